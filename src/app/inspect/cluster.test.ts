import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { openWith } from '../../../test/contract/stage.ts'
import { type FakeApiServer, type FakeOptions, startApiServer } from '../../../test/fakes/api-server.ts'
import { noFiles } from '../../../test/pki/inspected.ts'
import { Inspection } from '../../inspection/inspection.ts'
import { defaultThresholds } from '../../inspection/thresholds.ts'
import { scanCluster } from './cluster.ts'

const both = { clustertrustbundles: 'v1beta1', podcertificaterequests: 'v1beta1' }
let server: FakeApiServer | undefined

afterEach(() => server?.close())

/** Returns the notes on a cluster whose EndpointSlice has these addresses. */
async function notesOn(
  addresses: readonly string[],
  options: FakeOptions = {},
  namespace?: string,
): Promise<readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'kcert-scan-'))
  server = await startApiServer(options)
  server.put(
    { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices', namespace: 'default' },
    {
      metadata: { name: 'kubernetes', labels: { 'kubernetes.io/service-name': 'kubernetes' } },
      endpoints: addresses.map((address) => ({ addresses: [address] })),
    },
  )
  const cluster = await openWith(server.writeKubeconfig(join(folder, 'admin.conf')))
  const now = new Date()
  const inspection = new Inspection({ now, thresholds: defaultThresholds, readReferencedFile: noFiles })
  const { failure, notes } = await scanCluster(cluster, inspection, { namespace })
  cluster.close()
  rmSync(folder, { recursive: true })
  expect(failure).toBeUndefined()
  return notes
}

const [one, other] = ['192.0.2.10', '192.0.2.11']

test('names the kinds that the API server does not serve if there are others', async () => {
  expect(await notesOn([one, other, other])).toEqual([
    'PodCertificateRequests and ClusterTrustBundles: not served by the API server that kcert read, and there are 2. One of another version may serve them: give its URL with --server',
  ])
})

test('names only the kinds of the scope', async () => {
  const [note] = await notesOn([one, other], {}, 'shop')
  expect(note).toMatch(/^PodCertificateRequests: not served/)
})

test('says that the number of API servers is unknown if no object has it', async () => {
  const { podcertificaterequests } = both
  const [note] = await notesOn([], { certificateKinds: { podcertificaterequests } })
  expect(note).toMatch(/^ClusterTrustBundles: not served .*, and how many there are is unknown\./)
})

test.each([
  ['there is one API server', [one], {}],
  ['the API server serves both kinds in an older version', [one, other], { certificateKinds: both }],
])('says nothing if %s', async (_what, addresses, options) => {
  expect(await notesOn(addresses, options)).toEqual([])
})
