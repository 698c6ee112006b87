import { expect, test } from 'vitest'
import { PartSamples } from './part.ts'

const now = new Date('2027-01-01T00:00:00Z')
const certificate = (namespace: string, index: number) => ({
  ...{ kind: 'secret', namespace, name: `s-${index}`, entry: 'data[tls.crt]' },
  notBeforeMs: now.getTime() - 1_000,
  notAfterMs: now.getTime() + index * 1_000,
})

test('keeps the certificates that expire first, also if they come last', () => {
  const samples = new PartSamples(now)
  for (let index = 10_000; index > 0; index--) samples.add(certificate(`ns-${index % 100}`, index), true)
  const kept = samples.finish().samples.get('certificate_remaining_seconds')
  expect(kept?.size).toBe(2_000)
  expect(Math.max(...kept!.values())).toBe(now.getTime() + 2_000 * 1_000)
  expect(samples.leftOut).toBe(8_000)
})

test('one namespace with many expired certificates does not hide the others', () => {
  const samples = new PartSamples(now)
  for (let index = 0; index < 10_000; index++) samples.add(certificate('hostile', -index), true)
  samples.add(certificate('shop', 5), true)
  const kept = [...samples.finish().samples.get('certificate_remaining_seconds')!.keys()]
  expect(kept).toHaveLength(201)
  expect(kept.join()).toContain('namespace="shop"')
})

test('bounds the series of each metric, and counts the others', () => {
  const samples = new PartSamples(now)
  for (let index = 0; index < 5_010; index++)
    samples.set('ca_bundle_rejected', { namespace: `ns-${index}` }, 1)
  samples.set('ca_bundle_rejected', { namespace: 'ns-1' }, 1)
  expect(samples.samples.get('ca_bundle_rejected')?.size).toBe(5_000)
  expect(samples.leftOut).toBe(10)
})

test('does not limit objects without a namespace as if they were in one', () => {
  const samples = new PartSamples(now)
  for (let index = 1; index <= 300; index++) samples.add(certificate('', index), true)
  expect(samples.finish().samples.get('certificate_remaining_seconds')?.size).toBe(300)
  expect(samples.leftOut).toBe(0)
})

test('of certificates whose cut labels are the same, shows the one that expires first', () => {
  const samples = new PartSamples(now)
  const entry = 'e'.repeat(300)
  for (const index of [3, 1, 2])
    samples.add({ ...certificate('shop', index), name: 's', entry: `${entry}${index}` })
  const kept = samples.finish().samples.get('certificate_remaining_seconds')
  expect([...kept!.values()]).toEqual([now.getTime() + 1_000])
})
