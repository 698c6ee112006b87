import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { serviceAccountKeys } from '../../test/fixtures/service-account-keys.ts'
import { certificatePem, testCa, testKey } from '../../test/pki/kubeadm-tree.ts'
import type { NodeAccess, ProcessFacts } from '../pki/node-access.ts'
import { Certificate } from '../x509/certificate.ts'
import { keyIdOf } from '../x509/service-account-token.ts'
import { controlPlaneKeys, keyIdsIn, tokensOn } from './service-account-keys.ts'
import type { Site } from './site.ts'

const [rsa, ecdsa] = serviceAccountKeys

describe('the keys of a control plane', () => {
  const files = new Map([
    ['/pki/sa.pub', rsa.publicKey],
    ['/pki/next.pub', ecdsa.publicKey + rsa.publicKey],
    ['/pki/broken.pub', 'no key'],
  ])
  const siteOf = (words: readonly string[], jwks: unknown = { keys: [{ kid: rsa.keyId }] }) => {
    const processes: Pick<ProcessFacts, 'program' | 'argv'>[] = [
      { program: 'kube-apiserver', argv: ['kube-apiserver', ...words] },
      {
        program: 'kube-controller-manager',
        argv: ['kube-controller-manager', '--service-account-private-key-file', '/pki/sa.pub'],
      },
    ]
    const node = {
      name: 'cp1',
      processes: async () => processes,
      readFiles: async (paths: readonly string[]) =>
        paths.map((path) => {
          const text = files.get(path)
          return text === undefined
            ? { found: 'absent', path }
            : { found: 'file', path, content: Buffer.from(text) }
        }),
    }
    return {
      node: () => node,
      readAt: async (_node: string, path: string) => {
        if (jwks instanceof Error) throw jwks
        return path === '/openid/v1/jwks' ? jwks : {}
      },
    } as unknown as Site
  }

  test('are those of repeated flags and of several keys in a file, in order', async () => {
    const words = [
      ...['--service-account-key-file=/pki/next.pub', '--service-account-key-file', '/pki/sa.pub'],
      ...['--service-account-signing-key-file=/pki/sa.pub', '--service-account-issuer=https://a'],
      ...['--service-account-issuer=https://b', '--shutdown-delay-duration=15s', '--api-audiences=x,y'],
    ]
    expect(await controlPlaneKeys(siteOf(words), 'cp1')).toEqual({
      node: 'cp1',
      apiServer: {
        node: 'cp1',
        issuers: ['https://a', 'https://b'],
        audiences: ['x', 'y'],
        keyFiles: [
          { path: '/pki/next.pub', keyIds: { value: [ecdsa.keyId, rsa.keyId] } },
          { path: '/pki/sa.pub', keyIds: { value: [rsa.keyId] } },
        ],
        signingKey: { path: '/pki/sa.pub', keyIds: { value: [rsa.keyId] } },
        served: { value: [rsa.keyId] },
        shutdownDelay: '15s',
      },
      controllerManager: { node: 'cp1', signingKey: { path: '/pki/sa.pub', keyIds: { value: [rsa.keyId] } } },
    })
  })

  test.each([
    ['/pki/absent.pub', 'it is absent'],
    ['pki/sa.pub', 'the path is not absolute'],
    ['/pki/broken.pub', 'it contains no key in PEM that Kubernetes reads'],
  ])('in %s are unread', async (path, unread) => {
    const { apiServer } = await controlPlaneKeys(siteOf([`--service-account-key-file=${path}`]), 'cp1')
    expect(apiServer?.keyFiles).toEqual([{ path, keyIds: { unread } }])
  })

  test.each([
    ['an error', new Error('403'), '403'],
    ['no key', { keys: [] }, 'the answer has a key without kid, or no key'],
    ['no list', { keys: 'all' }, 'the answer has a key without kid, or no key'],
    ['a key without kid', { keys: [{ kid: 'a' }, null] }, 'the answer has a key without kid, or no key'],
  ])('are unread when /openid/v1/jwks is %s', async (_what, jwks, unread) => {
    expect((await controlPlaneKeys(siteOf([], jwks), 'cp1')).apiServer?.served).toEqual({ unread })
  })

  test('may be certificates and private keys, and never Ed25519', () => {
    const key = testKey('service account')
    const { certificate } = testCa('sa', key, new Date('2026-01-01T00:00:00Z'))
    const pem = key.export({ format: 'pem', type: 'pkcs8' }) as string
    const id = keyIdOf(Certificate.parse(certificate).publicKey)
    expect(keyIdsIn(Buffer.from(pem + certificatePem(certificate)))).toEqual({ value: [id, id] })
    const ed25519 =
      '-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n'
    expect(keyIdsIn(Buffer.from(ed25519))).toEqual({
      unread: 'it contains no key in PEM that Kubernetes reads',
    })
  })
})

describe('the tokens of a node', () => {
  let folder = ''
  let printed = ''

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'kcert-tokens-'))
  })

  afterEach(() => rmSync(folder, { recursive: true }))

  /** Runs the script in the shell of this machine, with the node's folders in one of the test. */
  const node = {
    name: 'w1',
    processes: async () => [{ program: 'kubelet', argv: ['kubelet', '--root-dir', '/var/lib/kubelet'] }],
    run: async (argv: readonly string[]) => {
      const [program, ...rest] = argv.map((word) => word.replace(/^\/(?:etc|root|var|srv)\//, `${folder}$&`))
      try {
        const stdout = execFileSync(program!, rest, { stdio: ['ignore', 'pipe', 'pipe'] })
        printed = stdout.toString()
        return { status: 0, stdout, stderr: '' }
      } catch (error) {
        const { status, stderr } = error as { status: number; stderr: Buffer }
        return { status, stdout: Buffer.alloc(0), stderr: stderr.toString() }
      }
    },
  } as unknown as NodeAccess

  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }

  /** Writes a token as a kubelet does: a link to a file in a dated folder. */
  const mount = (pod: string, volume: string, text: string, name = 'token') => {
    const at = `/var/lib/kubelet/pods/${pod}/volumes/kubernetes.io~projected/${volume}`
    write(`${at}/..2026_11_26/${name}`, text)
    symlinkSync(`..2026_11_26/${name}`, join(folder, at, name))
  }

  test('are found in volumes of pods and in kubeconfigs', async () => {
    mount('1', 'kube-api-access-x', rsa.boundToken)
    mount('1', 'vault', `${ecdsa.boundToken}\n`, 'vault-token')
    mount('2', 'config', 'ca.crt: x\n', 'ca.crt')
    write('/etc/cni/net.d/calico-kubeconfig', `users:\n- user:\n    token: "${rsa.legacyToken}"\n`)
    write('/srv/backup.conf', `{"token":"${ecdsa.legacyToken}"}\n`)
    const { mounted, files } = await tokensOn(node, ['/srv/backup.conf', '/srv/absent.conf'])
    expect(mounted.map(({ keyId, boundTo }) => [keyId, boundTo])).toEqual([
      [rsa.keyId, 'pod web-0'],
      [ecdsa.keyId, 'pod web-0'],
    ])
    expect(files.map(({ place, claims }) => [place, claims.keyId])).toEqual([
      [`w1:${folder}/etc/cni/net.d/calico-kubeconfig`, rsa.keyId],
      [`w1:${folder}/srv/backup.conf`, ecdsa.keyId],
    ])
  })

  test('leave the node without their signatures', async () => {
    mount('1', 'kube-api-access-x', rsa.boundToken)
    write('/root/.kube/config', `token: ${ecdsa.legacyToken}\n`)
    await tokensOn(node, [])
    expect(printed.split('\n')).toHaveLength(3)
    for (const token of [rsa.boundToken, ecdsa.legacyToken]) {
      const signature = token.split('.')[2]!
      expect(signature.match(/.{8}/g)!.filter((part) => printed.includes(part))).toEqual([])
    }
  })

  test('are none on a node without pods', async () => {
    expect(await tokensOn(node, [])).toEqual({ mounted: [], files: [] })
  })

  test('are unread when the node reports an error', async () => {
    const failing = {
      ...node,
      run: async () => ({ status: 3, stdout: Buffer.alloc(0), stderr: 'pods cannot be read\n' }),
    }
    await expect(tokensOn(failing as unknown as NodeAccess, [])).rejects.toThrow('pods cannot be read')
  })
})
