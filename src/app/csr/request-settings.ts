import { checkStandardInput, flagFiles, type NamedFile } from '../../cli/command-files.ts'
import type { Context } from '../../cli/context.ts'
import { readText } from '../../cli/input.ts'
import {
  type KubeadmSettings,
  kubeadmDefaults,
  kubeadmKeyType,
  readKubeadmSettings,
} from '../../csr/kubeadm-settings.ts'
import { kubeletClientSpec, kubeletServingSpec, serviceSpec, userSpec } from '../../csr/presets.ts'
import {
  altNamesOf,
  defaultKeyType,
  joinedAltNames,
  objectNameOf,
  type RequestSpec,
} from '../../csr/request-spec.ts'
import { commandLine } from '../../errors/command-line.ts'
import { given } from '../../errors/given.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { sourceName } from '../../errors/source-name.ts'
import { readCfsslRequest } from '../../pki/cfssl-request.ts'
import { keyTypeName, parseKeyType } from '../../x509/new-key.ts'
import type { RequestFlagValues } from './request-flags.ts'
import { wordsOf } from './request-input.ts'

const presets = ['cfssl', 'user', 'kubelet-client', 'kubelet-serving', 'service'] as const
const kinds = [...presets, 'kubeadm', 'cn'] as const
const subjectFlags = ['cn', 'org', 'ou', 'dns', 'ip', 'email', 'uri'] as const

/** Returns true if the command line sets a subject or SANs. */
export function hasSubject(flags: RequestFlagValues): boolean {
  return [...presets, ...subjectFlags].some((name) => {
    const value = flags[name]
    return typeof value === 'string' || (value?.length ?? 0) > 0
  })
}

/** Returns the files that the command reads. */
export function inputsOf(flags: RequestFlagValues): NamedFile[] {
  return flagFiles(flags, 'cfssl', 'key', 'password-file', 'kubeadm-config', 'ca-cert')
}

/** Throws KCERT_USAGE for flags that exclude one another: each kind of request sets its subject in a different way. */
export function checkTogether(flags: RequestFlagValues): void {
  const [one, other] = kinds.filter((name) => flags[name] !== undefined)
  if (other !== undefined)
    throw new KcertError('KCERT_USAGE', `--${one} and --${other} are mutually exclusive`, {
      why: 'each one sets the subject',
    })
  checkStandardInput(inputsOf(flags))
  const { key } = flags
  const making = (['key-out', 'key-type', 'key-format'] as const).find((name) => flags[name] !== undefined)
  if (key !== undefined && making !== undefined)
    throw new KcertError('KCERT_USAGE', `--key and --${making} are mutually exclusive`, {
      why: `--key uses an existing key, and --${making} is for a new one`,
    })
  if (one === undefined || one === 'cn') return
  const extra = unfitBeside(one, flags)
  if (extra === undefined) return
  throw new KcertError('KCERT_USAGE', `--${extra} and --${one} are mutually exclusive`, {
    why:
      extra === 'signer'
        ? 'the CAs of a control plane are not Kubernetes signers'
        : `--${one} sets what is in the CSR`,
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

/**
 * Throws KCERT_USAGE for a flag that does not apply to the output, because the user expects it to have an effect. A report shows
 * the object, too.
 */
export function checkEffect(flags: RequestFlagValues & { readonly output: string }): void {
  const hasObject = !['pem', 'cfssl'].includes(flags.output) && flags.kubeadm === undefined
  const useless: readonly (readonly [names: readonly (keyof RequestFlagValues)[], owner: string])[] = [
    [hasObject ? [] : objectFlags, 'the Kubernetes object (-o manifest)'],
    [
      flags.kubeadm === undefined ? controlPlaneFlags : [],
      'the certificates of a control plane (--kubeadm NAME)',
    ],
    [
      flags.kubeadm === undefined && flags.service === undefined ? ['cluster-domain'] : [],
      '--service NAME.NAMESPACE and --kubeadm NAME',
    ],
  ]
  for (const [names, owner] of useless) {
    const name = names.find((one) => isGiven(flags[one]))
    if (name === undefined) continue
    throw new KcertError('KCERT_USAGE', `--${name} has no effect here`, {
      why: `it applies to ${owner} only`,
    })
  }
}

function isGiven(value: string | number | readonly string[] | undefined): boolean {
  return typeof value === 'object' ? value.length > 0 : value !== undefined
}

/** Returns a flag that would have no effect, although the user expects one. */
function unfitBeside(kind: (typeof kinds)[number], flags: RequestFlagValues): string | undefined {
  const takesNames = flags.kubeadm === undefined || ['all', 'apiserver'].includes(flags.kubeadm)
  const unfit = [
    ...(kind === 'user' ? [] : ['org' as const]),
    'ou' as const,
    ...(takesNames ? [] : (['dns', 'ip'] as const)),
    ...(kind === 'kubeadm' ? (['email', 'uri', 'signer', 'usage'] as const) : []),
  ]
  return unfit.find((name) => (flags[name]?.length ?? 0) > 0)
}

/**
 * Returns the request that the flags describe. Throws KCERT_USAGE for invalid names, and KCERT_CFSSL_INVALID for cfssl's file.
 */
export async function settingsOf(flags: RequestFlagValues, context: Context): Promise<RequestSpec> {
  const spec = flags.cfssl === undefined ? specOfFlags(flags) : await specOfCfssl(flags.cfssl, flags, context)
  const { name, signer, usage, 'key-type': keyType, 'expiration-seconds': expirationSeconds } = flags
  return {
    ...spec,
    ...given({ objectName: name, signerName: signer, usages: wordsOf(usage), expirationSeconds }),
    ...(keyType === undefined ? {} : { keyType: parseKeyType(keyType) }),
  }
}

function specOfFlags(flags: RequestFlagValues): RequestSpec {
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
  if (value === '') throw new KcertError('KCERT_USAGE', `${flag} is empty`)
  return value
}

async function specOfCfssl(file: string, flags: RequestFlagValues, context: Context): Promise<RequestSpec> {
  const request = await readCfsslRequest(await readText(file, context))
  const { subject, altNames, keyType, leftOut, ca } = request
  // As in cfssl genkey: another command creates a CA.
  if (ca !== undefined) {
    throw new KcertError('KCERT_CFSSL_INVALID', `${sourceName(file)} requests a CA certificate`, {
      why: 'it has a "ca" section, which kcert csr create does not support',
      next: commandLine`kcert ca init --cfssl ${file} --out ca.pem --key-out ca-key.pem`,
    })
  }
  const commonName = subject.flat().find(({ type }) => type === 'CN')?.value
  return {
    subject,
    altNames: joinedAltNames(altNames, altNamesOf(flags)),
    keyType,
    objectName: objectNameOf(commonName ?? altNames.dns[0] ?? ''),
    notices: leftOut.map((member) => `"${member}" of ${sourceName(file)} is ignored`),
  }
}

/** Returns the settings of kubeadm's configuration file, overridden by the flags. */
export async function kubeadmSettingsOf(
  flags: RequestFlagValues,
  context: Context,
): Promise<KubeadmSettings> {
  const file = flags['kubeadm-config']
  const settings =
    file === undefined ? kubeadmDefaults : await readKubeadmSettings(await readText(file, context), file)
  const { dns, ip } = altNamesOf({ dns: flags.dns, ip: flags.ip })
  return {
    ...settings,
    ...given({
      nodeName: flags['node-name'],
      advertiseAddress: flags['advertise-address'],
      controlPlaneEndpoint: flags['control-plane-endpoint'],
      serviceSubnet: flags['service-subnet'],
      dnsDomain: flags['cluster-domain'],
      kubernetesVersion: flags['kubernetes-version'],
    }),
    apiServerCertSans: [...settings.apiServerCertSans, ...dns, ...ip],
    ...(flags['key-type'] === undefined
      ? {}
      : { keyType: kubeadmKeyType(keyTypeName(parseKeyType(flags['key-type']))) }),
  }
}
