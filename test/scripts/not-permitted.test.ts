import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { requestPem } from '../csr/made-requests.ts'
import { type FakeApiServer, startApiServer } from '../fakes/api-server.ts'
import { putCluster, putServing } from './cluster-session.ts'
import { kcertBeside } from './program.ts'
import { temporaryFolder } from './temporary-folder.ts'

// When the API server refuses kcert's credentials or action, every command exits with 6, never with the code of a negative
// result.

const folder = temporaryFolder('not-permitted')
let server: FakeApiServer
const kubeconfigs: Record<string, string> = {}

beforeAll(async () => {
  server = await startApiServer()
  putCluster(server)
  putServing(server, 'csr-1')
  kubeconfigs.unauthorized = server.writeKubeconfig(join(folder, 'unknown.conf'), { token: 'unknown' })
  kubeconfigs.forbidden = server.writeKubeconfig(join(folder, 'carol.conf'), { username: 'carol' })
  writeFileSync(join(folder, 'ann.csr'), requestPem({ subject: { commonName: 'ann' } }))
})
afterAll(() => server.close())

test.each([
  'csr list',
  'csr describe csr-1',
  'csr explain csr-1',
  'csr check csr-1 --cluster',
  'csr approve csr-1',
  'csr approve -l a=b --yes',
  'csr deny csr-1',
  'csr fetch csr-1 --out csr-1.crt',
  'csr fetch csr-1 --out-dir issued',
  'csr submit ann.csr --name ann --signer kubernetes.io/kube-apiserver-client',
  'csr submit ann.csr --name ann --signer kubernetes.io/kube-apiserver-client -o json',
  'token list',
  'token check 07401b',
  'token delete 07401b',
  'token delete --expired',
  'token create --dry-run',
  'cluster-info show',
  'cluster-info verify',
  'bootstrap check node-1',
  'kubelet forecast',
  'probe --api-servers',
  'probe --nodes',
  'probe --etcd',
  'probe --webhooks',
  'inspect --cluster',
  'audit ann.csr --cluster',
  'rotate-ca discover --dry-run',
])('kcert %s exits with 6 where the API server returns 401 or 403', async (line) => {
  for (const [kind, kubeconfig] of Object.entries(kubeconfigs)) {
    const { stdout, stderr, exit } = await kcertBeside(line.split(' '), {
      cwd: folder,
      env: { KUBECONFIG: kubeconfig },
    })
    expect(exit, `${kind}: ${stdout}${stderr}`).toBe(6)
  }
})
