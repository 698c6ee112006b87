import fc from 'fast-check'
import { seed } from './differential/seed.ts'

// Imported by whoever draws at random: each run draws the same, and KCERT_SEED other things.
fc.configureGlobal({ ...fc.readConfigureGlobal(), seed })
