import { containers } from './readers.ts'
import { testReaders } from './timed-fuzz.ts'

testReaders(containers)
