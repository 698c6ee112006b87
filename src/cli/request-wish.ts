import {
  type KubeadmSettings,
  kubeadmDefaults,
  kubeadmKeyType,
  readKubeadmSettings,
} from '../csr/kubeadm-settings.ts'
import { kubeletClientSpec, kubeletServingSpec, serviceSpec, userSpec } from '../csr/presets.ts'
import {
  altNamesOf,
  defaultKeyType,
  joinedAltNames,
  objectNameOf,
  type RequestSpec,
} from '../csr/request-spec.ts'
import { argumentVector, commandLine } from '../errors/command-line.ts'
import { KcertError } from '../errors/kcert-error.ts'
import { sourceName } from '../errors/source-name.ts'
import { readCfsslRequest } from '../pki/cfssl-request.ts'
import { keyTypeName, parseKeyType } from '../x509/new-key.ts'
import { checkStandardInput, type NamedFile } from './command-files.ts'
import type { Context } from './context.ts'
import { readInput } from './input.ts'

/** The flags of `kcert csr create` that say what to ask for. */
export interface WishFlags {
  readonly cfssl?: string | undefined
  readonly user?: string | undefined
  readonly 'kubelet-client'?: string | undefined
  readonly 'kubelet-serving'?: string | undefined
  readonly service?: string | undefined
  readonly cn?: string | undefined
  readonly org?: readonly string[] | undefined
  readonly ou?: readonly string[] | undefined
  readonly dns?: readonly string[] | undefined
  readonly ip?: readonly string[] | undefined
  readonly email?: readonly string[] | undefined
  readonly uri?: readonly string[] | undefined
  readonly key?: string | undefined
  readonly 'key-type'?: string | undefined
  readonly 'key-format'?: string | undefined
  readonly 'cluster-domain'?: string | undefined
  readonly name?: string | undefined
  readonly signer?: string | undefined
  readonly usage?: readonly string[] | undefined
  readonly 'expiration-seconds'?: number | undefined
}

const presets = ['cfssl', 'user', 'kubelet-client', 'kubelet-serving', 'service'] as const
const kinds = [...presets, 'kubeadm', 'cn'] as const
const subjectFlags = ['cn', 'org', 'ou', 'dns', 'ip', 'email', 'uri'] as const

/** True when the command line says what to ask for. */
export function saysWhat(flags: WishFlags): boolean {
  return [...presets, ...subjectFlags].some((name) => {
    const value = flags[name]
    return typeof value === 'string' || (value?.length ?? 0) > 0
  })
}

/** The flags that name what is read. */
export interface InputFlags {
  readonly cfssl?: string | undefined
  readonly key?: string | undefined
  readonly 'password-file'?: string | undefined
  readonly 'kubeadm-config'?: string | undefined
  readonly 'ca-cert'?: string | undefined
}

/** Returns the files that the command reads. */
export function inputsOf(flags: InputFlags): NamedFile[] {
  const names = ['cfssl', 'key', 'password-file', 'kubeadm-config', 'ca-cert'] as const
  return names.map((name) => ({ by: `--${name}`, path: flags[name] }))
}

interface OtherFlags extends InputFlags {
  readonly kubeadm?: string | undefined
  readonly 'key-out'?: string | undefined
}

/** Throws KCERT_USAGE for flags that do not go together: each kind of request has a subject of its own. */
export function checkTogether(flags: WishFlags & OtherFlags): void {
  const [one, other] = kinds.filter((name) => flags[name] !== undefined)
  if (other !== undefined)
    throw new KcertError('KCERT_USAGE', `--${one} and --${other} are two requests`, {
      why: 'each says what the subject is',
      next: `leave one of them out`,
    })
  checkStandardInput(inputsOf(flags))
  const { key } = flags
  const making = (['key-out', 'key-type', 'key-format'] as const).find((name) => flags[name] !== undefined)
  if (key !== undefined && making !== undefined)
    throw new KcertError('KCERT_USAGE', `--key takes a key that is there, and --${making} makes one`, {
      next: 'leave one of them out',
    })
  if (one === undefined || one === 'cn') return
  const extra = unfitBeside(one, flags)
  if (extra === undefined) return
  throw new KcertError('KCERT_USAGE', `--${extra} does not go with --${one}`, {
    why:
      extra === 'signer'
        ? 'the CAs of a control plane are no signers of Kubernetes'
        : 'what is in the request is given by it',
    next: commandLine`leave --${extra} out`,
  })
}

const objectFlags = ['name', 'signer', 'usage', 'expiration-seconds'] as const
const controlPlaneFlags = [
  'kubeadm-config',
  'node-name',
  'advertise-address',
  'control-plane-endpoint',
  'service-subnet',
  'kubernetes-version',
  'cert-dir',
  'kubeconfig-dir',
  'ca-cert',
] as const

type AllFlags = Partial<Record<(typeof controlPlaneFlags)[number], string | undefined>> &
  WishFlags & { readonly kubeadm?: string | undefined; readonly output: string }

/**
 * Throws KCERT_USAGE for a flag of something that is not made: its author expects that it has an effect. A report shows the
 * object, too.
 */
export function checkEffect(flags: AllFlags): void {
  const hasObject = !['pem', 'cfssl'].includes(flags.output) && flags.kubeadm === undefined
  const useless: readonly (readonly [names: readonly (keyof AllFlags)[], owner: string])[] = [
    [hasObject ? [] : objectFlags, 'the object of Kubernetes: -o manifest'],
    [
      flags.kubeadm === undefined ? controlPlaneFlags : [],
      'the certificates of a control plane: --kubeadm ROW',
    ],
    [
      flags.kubeadm === undefined && flags.service === undefined ? ['cluster-domain'] : [],
      '--service NAME.NAMESPACE and --kubeadm ROW',
    ],
  ]
  for (const [names, owner] of useless) {
    const name = names.find((one) => isGiven(flags[one]))
    if (name === undefined) continue
    throw new KcertError('KCERT_USAGE', `--${name} has no effect here`, {
      why: `it belongs to ${owner}`,
      next: commandLine`leave --${name} out, or make what it is for`,
    })
  }
}

function isGiven(value: string | number | readonly string[] | undefined): boolean {
  return typeof value === 'object' ? value.length > 0 : value !== undefined
}

/** A flag that would have no effect, which nobody who wrote it expects. */
function unfitBeside(kind: (typeof kinds)[number], flags: WishFlags & OtherFlags): string | undefined {
  const takesNames = flags.kubeadm === undefined || ['all', 'apiserver'].includes(flags.kubeadm)
  const unfit = [
    ...(kind === 'user' ? [] : ['org' as const]),
    'ou' as const,
    ...(takesNames ? [] : (['dns', 'ip'] as const)),
    ...(kind === 'kubeadm' ? (['email', 'uri', 'signer', 'usage'] as const) : []),
  ]
  return unfit.find((name) => (flags[name]?.length ?? 0) > 0)
}

/** Returns the request that flags describe. Throws KCERT_USAGE for names that cannot be, KCERT_CFSSL_INVALID for cfssl's file. */
export async function wishOf(flags: WishFlags, context: Context): Promise<RequestSpec> {
  const spec = flags.cfssl === undefined ? specOfFlags(flags) : await specOfCfssl(flags.cfssl, flags, context)
  const { name, signer, usage = [], 'key-type': keyType, 'expiration-seconds': expirationSeconds } = flags
  return {
    ...spec,
    ...(name === undefined ? {} : { objectName: name }),
    ...(signer === undefined ? {} : { signerName: signer }),
    ...(usage.length === 0
      ? {}
      : { usages: usage.flatMap((one) => one.split(',')).map((one) => one.trim()) }),
    ...(expirationSeconds === undefined ? {} : { expirationSeconds }),
    ...(keyType === undefined ? {} : { keyType: parseKeyType(keyType) }),
  }
}

function specOfFlags(flags: WishFlags): RequestSpec {
  const { org = [], ou = [], cn } = flags
  const altNames = altNamesOf(flags)
  if (flags.user !== undefined) return userSpec(flags.user, org, altNames)
  if (flags['kubelet-client'] !== undefined) return kubeletClientSpec(flags['kubelet-client'], altNames)
  if (flags['kubelet-serving'] !== undefined) return kubeletServingSpec(flags['kubelet-serving'], altNames)
  if (flags.service !== undefined)
    return serviceSpec(flags.service, flags['cluster-domain'] ?? 'cluster.local', altNames)
  return {
    subject: {
      organization: org.map((value) => present('--org', value)),
      organizationalUnit: ou.map((value) => present('--ou', value)),
      ...(cn === undefined ? {} : { commonName: present('--cn', cn) }),
    },
    altNames,
    keyType: defaultKeyType,
    objectName: objectNameOf(cn ?? altNames.dns[0] ?? altNames.ip[0] ?? org[0] ?? ''),
    notices: [],
  }
}

function present(flag: string, value: string): string {
  if (value === '')
    throw new KcertError('KCERT_USAGE', `${flag} "" has no value`, {
      next: commandLine`leave ${argumentVector([flag])} out`,
    })
  return value
}

async function specOfCfssl(file: string, flags: WishFlags, context: Context): Promise<RequestSpec> {
  const request = await readCfsslRequest(Buffer.from(await readInput(file, context)).toString('utf8'))
  const { subject, altNames, keyType, leftOut, ca } = request
  // As cfssl genkey does: a CA is made by another command.
  if (ca !== undefined) {
    throw new KcertError('KCERT_CFSSL_INVALID', `${sourceName(file)} asks for a CA`, {
      why: 'it has a "ca" section',
      next: commandLine`remove "ca", or create a CA: kcert ca init --cfssl ${file === '-' ? 'FILE' : file} --out ca.pem --key-out ca-key.pem`,
    })
  }
  const commonName = subject.flat().find(({ type }) => type === 'CN')?.value
  return {
    subject,
    altNames: joinedAltNames(altNames, altNamesOf(flags)),
    keyType,
    objectName: objectNameOf(commonName ?? altNames.dns[0] ?? ''),
    notices: leftOut.map((member) => `"${member}" of ${sourceName(file)} is not followed`),
  }
}

/** The flags of a control plane. */
export interface KubeadmFlags {
  readonly 'kubeadm-config'?: string | undefined
  readonly 'node-name'?: string | undefined
  readonly 'advertise-address'?: string | undefined
  readonly 'control-plane-endpoint'?: string | undefined
  readonly 'service-subnet'?: string | undefined
  readonly 'cluster-domain'?: string | undefined
  readonly 'kubernetes-version'?: string | undefined
  readonly 'key-type'?: string | undefined
  readonly dns?: readonly string[] | undefined
  readonly ip?: readonly string[] | undefined
}

/** Returns the settings of kubeadm's configuration file, and over them what flags say. */
export async function kubeadmSettingsOf(flags: KubeadmFlags, context: Context): Promise<KubeadmSettings> {
  const file = flags['kubeadm-config']
  const settings =
    file === undefined
      ? kubeadmDefaults
      : await readKubeadmSettings(Buffer.from(await readInput(file, context)).toString('utf8'), file)
  const { dns, ip } = altNamesOf({ dns: flags.dns, ip: flags.ip })
  return {
    ...settings,
    ...said('nodeName', flags['node-name']),
    ...said('advertiseAddress', flags['advertise-address']),
    ...said('controlPlaneEndpoint', flags['control-plane-endpoint']),
    ...said('serviceSubnet', flags['service-subnet']),
    ...said('dnsDomain', flags['cluster-domain']),
    ...said('kubernetesVersion', flags['kubernetes-version']),
    apiServerCertSans: [...settings.apiServerCertSans, ...dns, ...ip],
    ...(flags['key-type'] === undefined
      ? {}
      : { keyType: kubeadmKeyType(keyTypeName(parseKeyType(flags['key-type']))) }),
  }
}

function said<Key extends string>(key: Key, value: string | undefined): { [K in Key]?: string } {
  return (value === undefined ? {} : { [key]: value }) as { [K in Key]?: string }
}
