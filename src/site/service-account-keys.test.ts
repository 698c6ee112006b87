import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { serviceAccountKeys } from '../../test/fixtures/service-account-keys.ts'
import type { NodeAccess } from '../pki/node-access.ts'
import { reading, servedKeyIds, tokensOn } from './service-account-keys.ts'
import type { Site } from './site.ts'

const [rsa, ecdsa] = serviceAccountKeys

describe('the keys at /openid/v1/jwks', () => {
  const servedBy = async (jwks: unknown) => {
    const readAt = async (_node: string, path: string) => {
      if (jwks instanceof Error) throw jwks
      return path === '/openid/v1/jwks' ? jwks : {}
    }
    return reading(() => servedKeyIds({ readAt } as unknown as Site, 'cp1'))
  }

  test('are listed once', async () => {
    expect(await servedBy({ keys: [{ kid: 'a' }, { kid: 'b' }, { kid: 'a' }] })).toEqual({
      value: ['a', 'b'],
    })
  })

  test.each([
    ['an error', new Error('403'), '403'],
    ['no key', { keys: [] }, 'the answer has a key without kid, or no key'],
    ['no list', { keys: 'all' }, 'the answer has a key without kid, or no key'],
    ['a key without kid', { keys: [{ kid: 'a' }, null] }, 'the answer has a key without kid, or no key'],
  ])('are unread when it is %s', async (_what, jwks, unread) => {
    expect(await servedBy(jwks)).toEqual({ unread })
  })
})

describe('the tokens of a node', () => {
  let folder = ''
  let printed = ''

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'kcert-tokens-'))
    mkdirSync(join(folder, '/var/lib/kubelet/pods'), { recursive: true })
  })

  afterEach(() => {
    vi.unstubAllEnvs()
    rmSync(folder, { recursive: true })
  })

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

  /** Writes a token as a kubelet does: links to a dated folder, and to the first part of a path in it. */
  const mount = (pod: string, volume: string, text: string, name = 'token') => {
    const at = `/var/lib/kubelet/pods/${pod}/volumes/kubernetes.io~projected/${volume}`
    const [first = ''] = name.split('/')
    write(`${at}/..2026_11_26/${name}`, text)
    symlinkSync('..2026_11_26', join(folder, at, '..data'))
    symlinkSync(`..data/${first}`, join(folder, at, first))
  }

  test('are found in volumes of pods and in kubeconfigs', async () => {
    mount('1', 'kube-api-access-x', rsa.boundToken)
    mount('1', 'vault', `${ecdsa.boundToken}\n`, 'vault.example/token')
    mount('2', 'config', 'ca.crt: x\n', 'ca.crt')
    write('/etc/cni/net.d/calico-kubeconfig', `users:\n- user:\n    token: "${rsa.legacyToken}"\n`)
    write('/srv/backup.conf', `{"token":"${ecdsa.legacyToken}"}\n`)
    const { mounted, files } = await tokensOn(node, ['/srv/backup.conf'])
    expect(mounted.map(({ keyId, boundTo }) => [keyId, boundTo])).toEqual([
      [rsa.keyId, 'pod web-0'],
      [ecdsa.keyId, 'pod web-0'],
    ])
    expect(files.map(({ location, claims }) => [location, claims.keyId])).toEqual([
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

  test('are all found in a file of one line, in any encoding, behind a link', async () => {
    const users = [rsa.legacyToken, ecdsa.legacyToken].map((token) => ({ user: { token } }))
    write('/srv/one.json', `{"note":"\xff","users":${JSON.stringify(users)}}`)
    mkdirSync(join(folder, '/etc/kubernetes'), { recursive: true })
    symlinkSync(join(folder, '/srv/one.json'), join(folder, '/etc/kubernetes/admin.conf'))
    const { files } = await tokensOn(node, [])
    expect(files.map(({ claims }) => claims.keyId)).toEqual([rsa.keyId, ecdsa.keyId])
  })

  test('are found in every volume of a large node', async () => {
    const names = Array.from({ length: 250 }, (_, index) => `pod-${index}`)
    for (const name of names) mount(name, 'kube-api-access-x', rsa.boundToken)
    const { mounted } = await tokensOn(node, [])
    expect(mounted).toHaveLength(names.length)
  })

  test('are found beside NUL, links to folders and the headers that head prints', async () => {
    const [first, second] = ['a', 'b'].map((name) => `${folder}/etc/kubernetes/${name}`)
    const headers = [second, 'end', first].map((path) => `==> ${path} <==\n`).join('')
    write('/etc/kubernetes/a', `${headers}x\0${rsa.legacyToken}`)
    write('/etc/kubernetes/b', `${headers}${ecdsa.legacyToken}`)
    symlinkSync('/etc', join(folder, '/etc/kubernetes/c'))
    const { files } = await tokensOn(node, [])
    expect(files.map(({ claims }) => claims.keyId).sort()).toEqual([rsa.keyId, ecdsa.keyId].sort())
  })

  test('take a time that is linear in the length of a line', async () => {
    const lines = ['eyJ', 'eyJ.', '.', ' ', 'eyJeyJ.eyJ '].map((text) => text.repeat(200_000 / text.length))
    write('/etc/kubernetes/long', [...lines, rsa.legacyToken].join('\n'))
    expect((await tokensOn(node, [])).files).toHaveLength(1)
  }, 20_000)

  describe('for image credential providers', () => {
    const at = '/etc/kubernetes/providers'
    const config = (...providers: object[]) =>
      JSON.stringify({ apiVersion: 'kubelet.config.k8s.io/v1', kind: 'CredentialProviderConfig', providers })
    const ecr = { name: 'ecr', tokenAttributes: { serviceAccountTokenAudience: 'sts.example.com' } }
    const texts = new Map<string, string>()
    const argv = ['kubelet', `--image-credential-provider-config=${at}`]
    const names = () =>
      [...texts.keys()].filter((path) => path !== at).map((path) => path.slice(at.length + 1))
    const configured = {
      ...node,
      processes: async () => [{ program: 'kubelet', argv }],
      listFolder: async (path: string) =>
        texts.has(path)
          ? { found: 'not-a-folder' }
          : { found: 'folder', entries: names().map((name) => ({ name, kind: 'file' })) },
      readFiles: async (paths: readonly string[]) =>
        paths.map((path) => ({ path, found: 'file', content: Buffer.from(texts.get(path)!) })),
    } as unknown as NodeAccess
    const providers = async () => (await tokensOn(configured, [])).credentialProviders

    beforeEach(() => {
      texts.clear()
    })

    test('are named with their audience, from a file or a folder', async () => {
      texts.set(at, config({ name: 'none' }, ecr))
      expect(await providers()).toEqual([{ name: 'ecr', audience: 'sts.example.com' }])
      texts.clear()
      texts.set(`${at}/a.yaml`, config({ name: 'none' }))
      texts.set(`${at}/b.json`, config(ecr))
      texts.set(`${at}/c.txt`, 'not read by the kubelet')
      expect(await providers()).toEqual([{ name: 'ecr', audience: 'sts.example.com' }])
    })

    test('are unread if a file is not their configuration', async () => {
      texts.set(at, 'kind: Pod\n')
      await expect(providers()).rejects.toThrow(`${at} (--image-credential-provider-config): its kind is not`)
    })
  })

  test('are none on a node without a kubelet', async () => {
    rmSync(join(folder, 'var'), { recursive: true })
    const stopped = { ...node, processes: async () => [] } as unknown as NodeAccess
    expect(await tokensOn(stopped, [])).toEqual({ mounted: [], files: [], credentialProviders: [] })
  })

  describe('are unread', () => {
    const pods = '/var/lib/kubelet/pods'

    test('when the folder of a running kubelet has no pods', async () => {
      rmSync(join(folder, pods), { recursive: true })
      await expect(tokensOn(node, [])).rejects.toThrow(`${pods} does not exist`)
    })

    test('when a kubeconfig of the inventory does not exist', async () => {
      await expect(tokensOn(node, ['/srv/absent.conf'])).rejects.toThrow('/srv/absent.conf does not exist')
    })

    test('when a file name has a line break', async () => {
      write('/etc/kubernetes/a\nb', rsa.legacyToken)
      await expect(tokensOn(node, [])).rejects.toThrow('has a line break')
    })

    test('when the node has no find', async () => {
      write('/etc/kubernetes/a', rsa.legacyToken)
      vi.stubEnv('PATH', folder)
      symlinkSync('/bin/sh', join(folder, 'sh'))
      await expect(tokensOn(node, [])).rejects.toThrow('find is not installed')
    })

    // Permissions do not apply to root.
    const asUser = process.getuid?.() === 0 ? ['setpriv', '--reuid=65534', '--clear-groups'] : []
    test.each([
      ['/var/lib/kubelet', '/var/lib/kubelet/pods'],
      [`${pods}/1`, `${pods}/1/volumes/kubernetes.io~projected`],
      ['/root', '/root/.kube/config'],
      ['/etc/kubernetes/private', '/etc/kubernetes/private/file'],
    ])('when %s cannot be searched', async (closed, below) => {
      mkdirSync(dirname(join(folder, below)), { recursive: true })
      chmodSync(folder, 0o755)
      chmodSync(join(folder, closed), 0)
      const unprivileged = {
        ...node,
        run: (argv: readonly string[]) => node.run([...asUser, ...argv]),
      } as unknown as NodeAccess
      await expect(tokensOn(unprivileged, [])).rejects.toThrow('cannot be read')
      chmodSync(join(folder, closed), 0o755)
    })

    test('when the node reports an error', async () => {
      const failing = {
        ...node,
        run: async () => ({ status: 3, stdout: Buffer.alloc(0), stderr: 'pods cannot be read\n' }),
      }
      await expect(tokensOn(failing as unknown as NodeAccess, [])).rejects.toThrow('pods cannot be read')
    })
  })
})
