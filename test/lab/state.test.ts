import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { identityOf } from './command.ts'
import {
  completeSpec,
  defaultMinor,
  machineIdentity,
  minorsByRole,
  nodeIdentity,
  nodesOf,
  specName,
} from './spec.ts'
import { withLock } from './state.ts'

const folder = mkdtempSync(join(tmpdir(), 'kcert-lab-state-'))
afterAll(() => rmSync(folder, { recursive: true }))

test('waits for a held lock, also within one process', async () => {
  const file = join(folder, 'held')
  const order: string[] = []
  const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>()
  const first = withLock(file, 'it', 1000, async () => {
    order.push('first')
    await mayEnd
    order.push('first ends')
  })
  const second = withLock(file, 'it', 10_000, async () => order.push('second'))
  end()
  await Promise.all([first, second])
  expect(order).toEqual(['first', 'first ends', 'second'])
  expect(existsSync(file)).toBe(false)
})

test('takes over the lock of a dead holder, also when its process id is reused', async () => {
  const file = join(folder, 'dead')
  writeFileSync(file, JSON.stringify({ pid: process.pid, startTime: '1' }))
  expect(await withLock(file, 'it', 0, async () => 'taken')).toBe('taken')
})

test('fails with the name of the holder when a lock stays held', async () => {
  const file = join(folder, 'kept')
  writeFileSync(file, JSON.stringify(identityOf(process.pid)))
  await expect(withLock(file, 'it', 0, async () => 'taken')).rejects.toThrow(
    `it is used by process ${process.pid}`,
  )
  expect(existsSync(file)).toBe(true)
})

test('derives a node from its name', () => {
  expect(nodeIdentity('cp3')).toEqual({
    name: 'cp3',
    role: 'control-plane',
    address: '10.200.0.13',
    podSubnet: '10.244.13.0/24',
  })
  expect(nodeIdentity('w1').address).toBe('10.200.0.21')
  expect(machineIdentity('e5')).toMatchObject({ role: 'etcd', address: '10.200.0.35' })
  expect(() => nodeIdentity('e5')).toThrow('no node of the cluster')
  expect(() => nodeIdentity('db1')).toThrow('cp1 to cp9 or w1 to w9')
})

test('fills in defaults for missing fields, and the name distinguishes kinds', () => {
  const spec = completeSpec({ controlPlanes: 3, workers: 1, addons: true })
  expect(nodesOf(spec).map(({ name }) => name)).toEqual(['cp1', 'cp2', 'cp3', 'w1'])
  expect(specName(spec)).toBe(`kubeadm-3-1-rsa-2048-addons-${defaultMinor}`)
  expect(specName(completeSpec({ keys: 'ECDSA-P256', allFlags: true }))).toBe(
    `kubeadm-1-0-ecdsa-p256-all-flags-${defaultMinor}`,
  )
  expect(specName(completeSpec({ etcdMachines: 5 }))).toBe(`kubeadm-1-0-rsa-2048-etcd-5-${defaultMinor}`)
  const kubernetes = minorsByRole('cp=1.37,worker=1.34')!
  expect(specName(completeSpec({ kubernetes }))).toBe('kubeadm-1-0-rsa-2048-1.37-1.34')
})
