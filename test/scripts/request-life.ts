import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect } from 'vitest'
import type { RequestObject } from '../../src/csr/requests-api.ts'
import { type FakeApiServer, startApiServer } from '../fakes/api-server.ts'
import { requestsKey } from './cluster-session.ts'
import { kcert, kcertBeside, type Session } from './program.ts'
import { temporaryFolder } from './temporary-folder.ts'

// Shared parts of the suites for the requester's and reader's commands. They have an API server on loopback with a signing
// kube-controller-manager, and a separate name and separate files for each test. The lab runs the same steps on a real cluster.

export const user = ['--signer', 'kubernetes.io/kube-apiserver-client']

/** The cluster of a suite, and the steps of its tests. */
export class RequestLife {
  server!: FakeApiServer
  name = ''
  readonly folder: string
  #number = 0

  constructor(suite: string) {
    this.folder = temporaryFolder(suite)
    beforeAll(async () => {
      this.server = await startApiServer({ signer: 'controller' })
      this.server.writeKubeconfig(join(this.folder, 'admin.conf'))
    })
    afterAll(() => this.server.close())
    beforeEach(() => {
      this.server.faults.clear()
      this.#number++
      this.name = `user-${this.#number}`
    })
  }

  /** Returns the path of a file of this test. */
  readonly at = (file: string): string => join(this.folder, `${this.#number}-${file}`)

  get env(): Record<string, string> {
    return { KUBECONFIG: join(this.folder, 'admin.conf') }
  }

  readonly run = (...args: string[]): Promise<Session> => kcertBeside(args, { env: this.env })

  get stored(): RequestObject | undefined {
    return this.server.peek(requestsKey, this.name) as unknown as RequestObject | undefined
  }

  /** Approves or denies as another program would. */
  decide(type: 'Approved' | 'Denied', reason = 'ByTest', message = 'so it is'): void {
    const lastUpdateTime = new Date().toISOString()
    this.server.put(requestsKey, {
      ...this.server.peek(requestsKey, this.name)!,
      status: { conditions: [{ type, status: 'True', reason, message, lastUpdateTime }] },
    })
  }

  /** Runs kcert while another process approves the object as soon as it exists. */
  async runApproved(...args: string[]): Promise<Session> {
    let isOver = false
    const running = this.run(...args).finally(() => {
      isOver = true
    })
    while (!isOver && this.stored === undefined) await pause()
    if (this.stored !== undefined && this.stored.status?.conditions === undefined) this.decide('Approved')
    return running
  }

  /** Creates a request in a.csr with its key in key.pem. */
  makeRequest(...more: string[]): void {
    const { name, at } = this
    const made = kcert([
      'csr',
      'create',
      '--cn',
      name,
      '--key-out',
      at('key.pem'),
      '--out',
      at('a.csr'),
      ...more,
    ])
    expect(made.exit).toBe(0)
  }

  /** Returns the command line that creates everything from the key to the kubeconfig. */
  request(...more: string[]): string[] {
    const { name, at } = this
    const files = ['--key-out', at('key.pem'), '--out', at('a.crt'), '--kubeconfig-out', at('a.conf')]
    return ['csr', 'request', '--user', name, ...files, ...more]
  }

  /** Checks that the certificate is written and matches the key. */
  expectPair(): void {
    const { stdout } = kcert(['inspect', this.at('a.crt'), this.at('key.pem'), '-o', 'json'])
    expect(stdout).toContain('"matches": true')
  }
}

export function pause(ms = 20): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
