import type { CertificateAuthority } from '../../ca/certificate-authority.ts'
import type { FlagsOf } from '../../cli/base-command.ts'
import type { Context } from '../../cli/context.ts'
import { parseDuration } from '../../cli/instant.ts'
import { commandLine, fixed } from '../../errors/command-line.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { certificateRecord } from '../../rotation/certificate-record.ts'
import { etcdRotation } from '../../rotation/etcd/phase-table.ts'
import { manualRotation, type PhaseTable } from '../../rotation/phase-table.ts'
import type { CaName } from '../../rotation/target.ts'
import { caNames } from '../../rotation/target.ts'
import type { Settings } from '../../rotation/target-reading.ts'
import { type KubeadmKeyType, keyTypeName, kubeadmKeyTypes, parseKeyType } from '../../x509/new-key.ts'
import type { rotationSettingsFlags } from './flags.ts'

/** The values of the flags that configure a rotation; some commands have only some of them. */
export type RotationSettingsFlags = Partial<FlagsOf<typeof rotationSettingsFlags>> & {
  readonly proof?: Settings['proof'] | undefined
}

/** Returns true for the value of --ca that selects etcd's CA. */
export function isEtcd(ca: string | undefined): boolean {
  return ca?.trim() === 'etcd'
}

/** Returns the phases for the value of --ca. */
export function tableOf(ca: string | undefined): PhaseTable {
  return isEtcd(ca) ? etcdRotation : manualRotation
}

const notWithEtcd = ['no-bridge', 'new-keys', 'ca-cert', 'front-proxy-ca-cert'] as const

/** Throws KCERT_USAGE for choices that the rotation of etcd's CA does not have, and for those that only this rotation has. */
function checkEtcd(flags: RotationSettingsFlags): void {
  if (!isEtcd(flags.ca)) {
    if (flags['etcd-clients'] === undefined) return
    throw new KcertError('KCERT_USAGE', '--etcd-clients requires --ca etcd', {
      why: 'it is a choice of the rotation of the etcd CA',
      next: 'kcert rotate-ca plan --ca etcd --etcd-clients unknown',
    })
  }
  const given = notWithEtcd.find((name) => flags[name] !== undefined && flags[name] !== false)
  const wrong = flags.reason === 'compromise' ? '--reason compromise' : given && `--${given}`
  if (wrong === undefined) return
  throw new KcertError('KCERT_USAGE', `${wrong} cannot be used with --ca etcd`, {
    why: 'phase 1 creates the new etcd CA and the bridge certificate, which every member needs; the keys of the certificates stay',
    next: 'kcert rotate-ca plan --ca etcd',
  })
}

/** Returns the settings of the given flags only. Throws KCERT_USAGE. */
export function settingsOf(flags: RotationSettingsFlags, given: GivenCas): Partial<Settings> {
  checkEtcd(flags)
  const { ca, reason, waive = [], soak, algorithm } = flags
  const records = Object.fromEntries(
    Object.entries(given).map(([name, { certificate }]) => [name, certificateRecord(certificate)]),
  )
  const isCompromise = reason === 'compromise'
  return {
    ...(ca === undefined ? {} : { cas: casOf(ca) }),
    ...(flags['no-bridge'] || isCompromise ? { withBridge: false } : {}),
    ...(reason === undefined ? {} : { reason }),
    ...(flags.proof === undefined ? {} : { proof: flags.proof }),
    ...(flags['new-keys'] || isCompromise ? { newKeys: true } : {}),
    ...(algorithm === undefined ? {} : { keyType: kubeadmKeyTypeOf(algorithm) }),
    ...(flags['etcd-clients'] === undefined ? {} : { etcdClients: flags['etcd-clients'] }),
    ...(flags['max-unavailable'] === undefined ? {} : { atOnce: flags['max-unavailable'] }),
    ...(flags['trust-reloading-clients'] === false ? { trustsReloadingClients: false } : {}),
    ...(flags['accept-outage'] ? { acceptsOutage: true } : {}),
    ...(soak === undefined ? {} : { soakMs: parseDuration(soak, '--soak') }),
    acceptedVersions: new Set(flags['accept-untested-version']),
    waivers: new Set(waive),
    ...(Object.keys(records).length === 0 ? {} : { given: records }),
  }
}

/** Returns kubeadm's name of a key type, in any of the spellings that other commands accept. Throws KCERT_USAGE. */
function kubeadmKeyTypeOf(text: string): KubeadmKeyType {
  const name = keyTypeName(parseKeyType(text))
  const found = kubeadmKeyTypes.find((one) => one === name)
  if (found !== undefined) return found
  throw new KcertError('KCERT_USAGE', `kubeadm does not support the key type ${JSON.stringify(name)}`, {
    why: `the values of its encryptionAlgorithm are ${kubeadmKeyTypes.join(', ')}`,
    next: 'kcert rotate-ca plan --algorithm ECDSA-P256',
  })
}

function casOf(text: string): CaName[] {
  if (isEtcd(text)) return ['etcd']
  const names = text.split(',').map((name) => name.trim())
  const unknown = names.find((name) => !caNames.some((known) => known === name))
  if (unknown !== undefined || names.length === 0) {
    throw new KcertError('KCERT_USAGE', `invalid --ca ${JSON.stringify(text)}`, {
      why: 'the value is cluster, front-proxy or cluster,front-proxy; or etcd alone, which is rotated by commands of its own',
      next: commandLine`kcert rotate-ca plan --ca ${caNames.join(',')}`,
    })
  }
  return caNames.filter((name) => names.includes(name))
}

/** CAs that the operator provides. */
export type GivenCas = Readonly<Partial<Record<CaName, CertificateAuthority>>>

/** Returns the CAs in the files of the flags. Throws KCERT_CA_UNFIT for one that could not replace the old CA, KCERT_FILE_… */
export async function givenCas(flags: RotationSettingsFlags, context: Context): Promise<GivenCas> {
  const pairs = [
    ['cluster', flags['ca-cert'], flags['ca-key']],
    ['front-proxy', flags['front-proxy-ca-cert'], flags['front-proxy-ca-key']],
  ] as const
  const given: Partial<Record<CaName, CertificateAuthority>> = {}
  for (const [ca, certificate, key] of pairs) {
    if (certificate === undefined || key === undefined) continue
    const { openCaFiles } = await import('../ca/ca-files.ts')
    const signingCa = await openCaFiles(
      { ca: certificate, 'ca-key': key, 'ca-password-file': undefined },
      context,
    )
    checkValidity(certificate, signingCa, context.clock())
    given[ca] = signingCa
  }
  return given
}

function checkValidity(file: string, { certificate }: CertificateAuthority, now: Date): void {
  const { notBefore, notAfter } = certificate
  if (notBefore <= now && now < notAfter) return
  throw new KcertError('KCERT_CA_UNFIT', `the CA ${file} is not valid now`, {
    why: `it is valid from ${notBefore.toISOString()} to ${notAfter.toISOString()}`,
    next: 'kcert ca renew --help',
  })
}

/** Returns the phases that --phase, --through and --all select; undefined without these flags. Throws KCERT_USAGE. */
export function phasesOf(
  flags: {
    readonly phase?: string | undefined
    readonly through?: number | undefined
    readonly all?: boolean
    readonly ca?: string | undefined
  },
  table = tableOf(flags.ca),
): readonly number[] | undefined {
  const last = table.rows.length
  if (flags.all) return range(1, last)
  if (flags.through === undefined && flags.phase === undefined) return undefined
  const asked = flags.phase ?? `1-${flags.through}`
  const [, first = '', end = first] = /^(\d{1,2})(?:-(\d{1,2}))?$/.exec(asked) ?? []
  const [from, to] = [Number(first), Number(end)]
  if (first === '' || from < 1 || to > last || from > to) {
    throw new KcertError(
      'KCERT_USAGE',
      `invalid phase ${JSON.stringify(flags.phase ?? String(flags.through))}: phases are 1 to ${last}`,
      {
        why: 'the value is a phase or a range, for example 3 or 2-6',
        next: commandLine`${fixed(table.command)}`,
      },
    )
  }
  return range(from, to)
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index)
}
