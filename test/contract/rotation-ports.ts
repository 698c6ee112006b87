import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Executor, Observer } from '../../src/rotation/ports.ts'
import { type FileSnapshot, fileAt, type Snapshot, sectionNames } from '../../src/rotation/snapshot.ts'

/** A cluster with its ports, before a rotation. */
export interface PortsStage {
  readonly observer: Observer
  readonly executor: Executor
  /** Returns the result of the work, while simulated time passes. */
  await<Result>(work: Promise<Result>): Promise<Result>
  close(): Promise<void>
}

/** The contract of every executor, compared with the snapshots of its observer: for the simulated cluster and a real one. */
export function rotationPortsContract(title: string, open: () => Promise<PortsStage>): void {
  describe(`${title}: executor and observer`, () => {
    let stage: PortsStage
    beforeAll(async () => {
      stage = await open()
    })
    afterAll(async () => {
      await stage?.close()
    })

    const observe = async (): Promise<Snapshot> =>
      (await stage.await(stage.observer.observe(sectionNames))) as Snapshot
    const clientCa = (observed: Snapshot): FileSnapshot => {
      const api = observed.components.find(({ name }) => name === 'kube-apiserver')!
      return fileAt(observed, api.node, api.flags['client-ca-file'])!
    }
    const isDrift = { code: 'KCERT_ROTATION_DRIFT' }

    test('does not change a file that differs from the plan', async () => {
      const before = clientCa(await observe())
      const { node, path, mode } = before
      const content = { kind: 'certificates', certificates: [] } as const
      const replaces = '0'.repeat(64)
      const write = stage.executor.write({
        kind: 'write-file',
        phase: 5,
        node,
        path,
        replaces,
        content,
        mode,
      })
      await expect(stage.await(write)).rejects.toMatchObject(isDrift)
      expect(clientCa(await observe())).toEqual(before)
    })

    test('backs up a replaced file first, with its phase, and restores it unchanged', async () => {
      const observed = await observe()
      const { node, path, mode, digest, contains } = clientCa(observed)
      const [ca] = contains.kind === 'certificates' ? contains.certificates : []
      const write = { kind: 'write-file', phase: 5, node, path, mode } as const
      const twice = { kind: 'certificates', certificates: [ca!, ca!] } as const
      await stage.await(stage.executor.write({ ...write, replaces: digest, content: twice }))
      const after = await observe()
      expect(clientCa(after).digest).not.toBe(digest)
      expect(after.copies).toContainEqual(
        expect.objectContaining({ phase: 5, node, of: { path }, digest, mode }),
      )
      const content = { kind: 'copy', digest } as const
      await stage.await(stage.executor.write({ ...write, replaces: clientCa(after).digest, content }))
      expect(clientCa(await observe()).digest).toBe(digest)
    })

    test('does not change an object at another resource version', async () => {
      const before = (await observe()).clusterInfo!
      const object = { kind: 'ConfigMap', namespace: 'kube-public', name: 'cluster-info' }
      const change = { kind: 'cluster-info', trust: [...before.trust, ...before.trust] } as const
      const patch = stage.executor.patch({ kind: 'patch-object', phase: 5, object, version: '0', change })
      await expect(stage.await(patch)).rejects.toMatchObject(isDrift)
      expect((await observe()).clusterInfo).toEqual(before)
    })

    test('does not restart a process that has already been replaced', async () => {
      const manager = (observed: Snapshot) =>
        observed.components.find(({ name }) => name === 'kube-controller-manager')!
      const before = manager(await observe())
      const restart = { kind: 'restart', phase: 2, process: before.id, how: 'definition' } as const
      const replaces = before.process!.startedAtMs - 60_000
      await stage.await(stage.executor.restart({ ...restart, replaces }))
      expect(manager(await observe()).process?.startedAtMs).toBe(before.process!.startedAtMs)
    })

    test('replaces the process of a restarted service, which becomes healthy', async () => {
      const kubelet = (observed: Snapshot) => observed.kubelets.at(-1)!
      const before = kubelet(await observe())
      const replaces = before.process!.startedAtMs
      const restart = { kind: 'restart', phase: 9, process: before.id, replaces, how: 'service' } as const
      await stage.await(stage.executor.restart(restart))
      const after = kubelet(await observe()).process
      expect(after?.isHealthy).toBe(true)
      expect(after?.startedAtMs).toBeGreaterThan(replaces)
    })

    test('a probe returns its result, and throws nothing', async () => {
      const at = (await observe()).components.find(({ name }) => name === 'kube-apiserver')!.id
      const subject = { kind: 'client', at, ca: 'cluster', generation: 'old' } as const
      const probe = (expects: 'accepted' | 'refused') =>
        stage.await(
          stage.executor.probe({
            kind: 'probe',
            phase: 5,
            subject: { ...subject, expects },
            // Any response shows that the server is another one.
            deadlineMs: expects === 'accepted' ? 60_000 : 1_000,
          }),
        )
      expect(await probe('accepted')).toMatchObject({ ok: true })
      expect(await probe('refused')).toEqual({
        ok: false,
        detail: expect.stringMatching(/accepted|answers (2|403)/),
      })
    })
  })
}
