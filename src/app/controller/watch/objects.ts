import type { Cluster } from '../../../cluster/cluster.ts'
import { resources } from '../../../cluster/kinds.ts'
import { KcertError } from '../../../errors/kcert-error.ts'
import type { Group } from '../../../inspection/entries.ts'
import { Inspection } from '../../../inspection/inspection.ts'
import { tlsType } from '../../../inspection/read-manifest.ts'
import { roleOf } from '../../../inspection/roles.ts'
import { defaultThresholds } from '../../../inspection/thresholds.ts'
import type { Certificate } from '../../../x509/certificate.ts'
import { type Findings, scanKind } from '../../inspect/cluster.ts'
import type { PartSamples } from './part.ts'

/** etcd's limit of an object is 1.5 MiB, and a value has a third more in base64. */
const mostPemBytes = 1_048_576
/** A kubeconfig of YAML needs many times its size in memory. */
const mostKubeconfigBytes = 131_072

/** Adds the certificates in the objects of one kind. Throws if the kind cannot be read. */
export async function watchObjects(
  cluster: Cluster,
  plural: string,
  to: PartSamples,
  now: Date,
): Promise<void> {
  const findings = new ObjectFindings(to, now)
  const isServed = await scanKind(cluster, findings, plural)
  if (findings.refusal !== undefined) throw findings.refusal
  // Every API server serves the other kinds. One that is starting, or a proxy, responds with 404 too.
  if (!isServed && plural !== resources.clusterTrustBundles.resource)
    throw new KcertError('KCERT_API_NOT_FOUND', `the API server does not serve ${plural}`)
}

/** Reads each object by itself, and keeps nothing of it but names and times. */
class ObjectFindings implements Findings {
  refusal: KcertError | undefined
  private readonly to: PartSamples
  private readonly now: Date

  constructor(to: PartSamples, now: Date) {
    this.to = to
    this.now = now
  }

  addRefused(_name: string, error: KcertError): void {
    this.refusal = error
  }

  async addObject(source: string, object: object, kind: string): Promise<void> {
    const { object: readable, isTooLarge } = withCertificates(object, kind === 'Secret')
    const inspection = new Inspection({
      now: this.now,
      thresholds: defaultThresholds,
      readReferencedFile: (name) => ({ name, reason: 'io', detail: 'a file of another machine' }),
    })
    await inspection.addObject(source, readable, kind)
    const { groups } = inspection
    const word = source.slice(0, source.indexOf(' '))
    const { namespace = '', name = '' } =
      (object as { metadata?: { namespace?: string; name?: string } }).metadata ?? {}
    for (const group of groups) {
      const certificate = decidingOf(group)
      if (certificate === undefined) continue
      const { notBeforeMs, notAfterMs } = certificate
      this.to.add({ kind: word, namespace, name, entry: group.entry, notBeforeMs, notAfterMs }, true)
    }
    const isTls = (object as { type?: unknown }).type === tlsType
    const lacksOne = isTls && groups.every(({ certificates }) => certificates.length === 0)
    // A caBundle without a certificate has no group. Values of other users are not checked further: that could take long.
    const isMalformed =
      !('data' in readable) && inspection.finish().report.problems.some(({ code }) => malformed.has(code))
    this.to.count(
      'unreadable_objects',
      { kind: word },
      Number(isTooLarge || lacksOne || isMalformed || groups.some(isFaulty)),
    )
  }
}

const malformed: ReadonlySet<string> = new Set(['FIELD_MALFORMED', 'CERT_UNREADABLE', 'KCERT_DEFECT'])

function isFaulty({ leafFault }: Group): boolean {
  return leafFault !== undefined
}

/** Returns the certificate that decides until when all of them can be used; undefined if they are not in use. */
function decidingOf({ certificates }: Group): Certificate | undefined {
  const [first] = certificates
  if (first === undefined) return undefined
  const { isTrusted, isRecord } = roleOf(first, () => false)
  if (isRecord) return undefined
  const sign = isTrusted ? -1 : 1
  return certificates
    .map(({ certificate }) => certificate)
    .reduce((best, one) => (sign * (one.notAfterMs - best.notAfterMs) < 0 ? one : best))
}

/**
 * Returns the object with only the values that contain a certificate in PEM or a kubeconfig. Other values, such as private keys and
 * keystores, are not parsed: the password of a keystore costs processor time that its author chooses.
 */
function withCertificates(
  object: object,
  isSecret: boolean,
): { readonly object: object; readonly isTooLarge: boolean } {
  let isTooLarge = false
  const kept = (values: unknown, textOf: (value: string) => string): object =>
    Object.fromEntries(
      Object.entries((values ?? {}) as Record<string, unknown>).filter(([, value]) => {
        if (typeof value !== 'string') return false
        const text = textOf(value)
        const isPem =
          text.includes('-----BEGIN CERTIFICATE-----') || text.includes('-----BEGIN TRUSTED CERTIFICATE')
        const isKubeconfig = !isPem && /certificate(?:-authority)?-data"?:/.test(text)
        if (!isPem && !isKubeconfig) return false
        const isSmall = text.length <= (isPem ? mostPemBytes : mostKubeconfigBytes)
        isTooLarge ||= !isSmall
        return isSmall
      }),
    )
  const { data, binaryData, ...rest } = object as Readonly<Record<string, unknown>>
  if (data === undefined && binaryData === undefined) return { object, isTooLarge }
  const decoded = (value: string): string => Buffer.from(value, 'base64').toString('latin1')
  return {
    object: {
      ...rest,
      data: kept(data, isSecret ? decoded : (value) => value),
      binaryData: kept(binaryData, decoded),
    },
    isTooLarge,
  }
}
