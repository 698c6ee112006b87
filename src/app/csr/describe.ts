import pMap from 'p-map'
import { clusterRequest } from '../../csr/cluster-request.ts'
import { decidedBy } from '../../csr/managers.ts'
import { signingRequestOfObject } from '../../csr/request-object.ts'
import type { RequestObject, RequestsApi } from '../../csr/requests-api.ts'
import { rfc3339 } from '../../pki/rfc3339.ts'
import type { RequestDescription, RequestDescriptions } from './description-report.ts'

/** Returns the descriptions of the named requests, in order. */
export async function describeRequests(
  api: RequestsApi,
  names: readonly string[],
  now: Date,
): Promise<RequestDescriptions> {
  const objects = await pMap(names, async (name) => ({ name, object: await api.get(name) }), {
    concurrency: 8,
  })
  const found = objects.flatMap(({ object }) => object ?? [])
  return {
    apiVersion: 'kcert/v1',
    kind: 'RequestDescriptions',
    generatedAt: rfc3339(now),
    requests: await pMap(found, (object) => describe(object, now), { concurrency: 1 }),
    missing: objects.filter(({ object }) => object === undefined).map(({ name }) => name),
  }
}

async function describe(object: RequestObject, now: Date): Promise<RequestDescription> {
  const request = signingRequestOfObject(object)
  const { resourceVersion, annotations = {}, certificate } = request
  const decider = decidedBy(object)
  return {
    ...clusterRequest(request, now),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
    annotations: { ...annotations },
    ...(decider === undefined ? {} : { decidedBy: decider }),
    ...(await inspected(certificate, request.name ?? '', now)),
  }
}

async function inspected(
  certificate: Uint8Array | undefined,
  name: string,
  now: Date,
): Promise<Pick<RequestDescription, 'certificates' | 'problems'>> {
  if (certificate === undefined) return { certificates: [], problems: [] }
  const [{ Inspection }, { defaultThresholds }] = await Promise.all([
    import('../../inspection/inspection.ts'),
    import('../../inspection/thresholds.ts'),
  ])
  const inspection = new Inspection({
    now,
    thresholds: defaultThresholds,
    // A certificate references no file.
    readReferencedFile: (path) => ({ name: path, reason: 'not-found', detail: '' }),
  })
  await inspection.add({ name: `csr/${name}`, bytes: certificate })
  const { certificates, problems } = inspection.finish().report
  return { certificates, problems }
}
