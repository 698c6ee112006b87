import { expect, test } from 'vitest'
import { keySettingsFlags } from './flags.ts'

test('watches the counters longer than client-go keeps a watch: 10 minutes', () => {
  expect(keySettingsFlags.soak.default).toBe('15m')
})
