import { existsSync, statSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import type { Context } from '../../cli/context.ts'
import { readTrustedText } from '../../cli/input.ts'
import type { Cluster } from '../../cluster/cluster.ts'
import { resources } from '../../cluster/kinds.ts'
import { getOne } from '../../cluster/readable.ts'
import { noAltNames, type RequestSpec } from '../../csr/request-spec.ts'
import { KcertError } from '../../errors/kcert-error.ts'
import { servingNames } from '../../kubelet/node-names.ts'
import { type Template, templateOf } from '../../kubelet/template.ts'
import { usagesFor } from '../../pki/usages.ts'
import type { RequestFlagValues } from '../csr/request-flags.ts'
import { hasSubject, settingsOf } from '../csr/request-settings.ts'

export interface ManageFlags extends RequestFlagValues {
  readonly template?: string | undefined
  readonly 'cert-dir'?: string | undefined
  readonly 'pair-name'?: string | undefined
}

/** The settings of `kcert kubelet manage`. */
export interface ManageSettings {
  /** The request without subject and names. */
  readonly spec: RequestSpec & { readonly signerName: string; readonly usages: readonly string[] }
  /** An absolute path. */
  readonly folder: string
  readonly prefix: string
  readonly source: TemplateSource
  readonly notices: readonly string[]
}

/** The source of subject and SANs. The addresses of a Node are read each time, because they may change. */
export type TemplateSource =
  | { readonly by: 'flags'; readonly template: Template }
  | { readonly by: 'file'; readonly file: string }
  | { readonly by: 'node'; readonly node: string; readonly template: Template }

/** The folder of the kubelet's own certificates. */
const kubeletFolder = '/var/lib/kubelet/pki'

/** Returns the settings from the flags. Throws KCERT_USAGE. */
export async function manageSettingsOf(flags: ManageFlags, context: Context): Promise<ManageSettings> {
  const { template: file } = flags
  if (file === undefined && !hasSubject(flags))
    throw new KcertError('KCERT_USAGE', 'no subject or SAN given', {
      why: 'a certificate needs a subject or SANs, such as those of --kubelet-serving',
      next: 'kcert kubelet manage --help',
    })
  if (file !== undefined && hasSubject(flags))
    throw new KcertError('KCERT_USAGE', '--template and flags for subject or SANs are mutually exclusive', {
      why: 'the template contains the subject and the SANs, and is read again when it changes',
    })
  const wanted = await settingsOf(flags, context)
  const { signerName, keyType, purpose } = wanted
  const usages = wanted.usages ?? (purpose && usagesFor(purpose, keyType.algorithm))
  if (signerName === undefined)
    throw missing('--signer', 'a signer, such as kubernetes.io/kube-apiserver-client')
  if (usages === undefined) throw missing('--usage', 'the usages of the certificate, such as "client auth"')
  const { folder, prefix } = pairLocation(flags, context)
  const source = sourceOf(flags, wanted)
  return {
    spec: { ...wanted, signerName, usages },
    folder,
    prefix,
    source,
    notices: source.by === 'node' ? [] : wanted.notices,
  }
}

function pairLocation(flags: ManageFlags, { workingFolder }: Context): { folder: string; prefix: string } {
  const isKubelets = flags['kubelet-client'] !== undefined || flags['kubelet-serving'] !== undefined
  const named = flags['cert-dir'] ?? (isKubelets ? kubeletFolder : undefined)
  if (named === undefined) throw missing('--cert-dir', 'a folder for certificate and key')
  const prefix =
    flags['pair-name'] ??
    (flags['kubelet-client'] !== undefined
      ? 'kubelet-client'
      : flags['kubelet-serving'] !== undefined
        ? 'kubelet-server'
        : undefined)
  if (prefix === undefined) throw missing('--pair-name', 'a name for the files of certificate and key')
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,100}$/.test(prefix))
    throw new KcertError('KCERT_USAGE', `--pair-name ${JSON.stringify(prefix)} is not a file name`, {
      why: 'it may have letters, digits, ".", "_" and "-"',
      next: '--pair-name kubelet-server',
    })
  const folder = isAbsolute(named) ? named : join(workingFolder, named)
  if (existsSync(folder) && !statSync(folder).isDirectory())
    throw new KcertError('KCERT_USAGE', `--cert-dir ${named} is not a folder`)
  return { folder, prefix }
}

function sourceOf(flags: ManageFlags, wanted: RequestSpec): TemplateSource {
  const { template: file, 'kubelet-serving': node, dns = [], ip = [] } = flags
  if (file !== undefined) return { by: 'file', file }
  const { commonName = '', organization = [], organizationalUnit = [] } = wanted.subject as Partial<Template>
  const subject = { commonName, organization, organizationalUnit }
  if (node !== undefined && dns.length + ip.length === 0)
    return { by: 'node', node, template: templateOf(subject) }
  return { by: 'flags', template: templateOf({ ...subject, ...wanted.altNames }) }
}

/** Returns the request for a template. */
export function specFor(spec: ManageSettings['spec'], template: Template): ManageSettings['spec'] {
  const { commonName, organization, organizationalUnit, dns, ip, email, uri } = template
  return {
    ...spec,
    subject: { organization, organizationalUnit, ...(commonName === '' ? {} : { commonName }) },
    altNames: { ...noAltNames, dns, ip, email, uri },
  }
}

/** Returns the template in a file. Throws KCERT_TEMPLATE_INVALID and file errors. */
export async function templateIn(file: string, context: Context): Promise<Template> {
  const { readTemplate } = await import('../../kubelet/template-file.ts')
  return readTemplate(await readTrustedText('certificate template', file, context), file)
}

/** Returns the template with the names of the Node's addresses; undefined while it has none. Throws the API server's errors. */
export async function templateOfNode(
  { objects }: Pick<Cluster, 'objects'>,
  { node, template }: Extract<TemplateSource, { by: 'node' }>,
): Promise<Template | undefined> {
  const found = await getOne(objects, { ...resources.nodes, name: node })
  const names = servingNames(found?.status?.addresses ?? [])
  return names && { ...template, ...names }
}

function missing(flag: string, what: string): KcertError {
  return new KcertError('KCERT_USAGE', `${flag} is required`, {
    why: `kcert needs ${what}`,
    next: 'kcert kubelet manage --help',
  })
}
