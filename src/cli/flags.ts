import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import type { OptionFlag } from '@oclif/core/interfaces'
import type { ConnectionOptions } from '../cluster/cluster.ts'
import type { AskedNames, SelectedContext } from '../cluster/kubeconfig-files.ts'
import { KcertError } from '../errors/kcert-error.ts'

// Builders for the flags and operands of all commands, by their value: none, text, a number, one of a list.

interface Choice {
  readonly char?: 'A' | 'f' | 'i' | 'l' | 'n' | 'w' | 'y'
  readonly helpGroup?: string
  readonly exclusive?: string[]
  readonly dependsOn?: string[]
  readonly aliases?: string[]
}

/** Options that ensure a value. */
type Ensured<Value> = { readonly required: true } | { readonly default: Value }

/** The type of a flag with or without an ensured value. */
type Either<Value> = OptionFlag<Value> | OptionFlag<Value | undefined>

/** Returns a flag without a value. */
export function boolean(
  description: string,
  choice: Choice & { readonly allowNo?: true; readonly default?: true } = {},
) {
  return Flags.boolean({ description, ...choice })
}

/** Returns a flag with a value; `helpValue` is the value's name in the help. */
export function value(
  helpValue: string,
  description: string,
  choice: Choice & Ensured<string>,
): OptionFlag<string>
export function value(helpValue: string, description: string, choice?: Choice): OptionFlag<string | undefined>
export function value(helpValue: string, description: string, choice: Choice = {}): Either<string> {
  return Flags.string({ description, helpValue, ...choice })
}

/** Returns a flag that can be repeated; with a delimiter, one value may contain several. */
export function repeated(
  helpValue: string,
  description: string,
  choice: Choice & { readonly required: true },
): OptionFlag<string[]>
export function repeated(
  helpValue: string,
  description: string,
  choice?: Choice & { readonly delimiter?: ',' },
): OptionFlag<string[] | undefined>
export function repeated(helpValue: string, description: string, choice: Choice = {}): Either<string[]> {
  return Flags.string({ description, helpValue, multiple: true, multipleNonGreedy: true, ...choice })
}

/** Returns the same flags under one heading of the help. */
export function inGroup<Group extends Record<string, object>>(helpGroup: string, flags: Group): Group {
  const grouped = Object.entries(flags).map(([name, flag]) => [name, { ...flag, helpGroup }])
  return Object.fromEntries(grouped) as Group
}

interface Bounds {
  readonly min?: number
  readonly max?: number
}

/** Returns a flag with a whole number. */
export function number(
  helpValue: string,
  description: string,
  choice: Choice & Bounds & Ensured<number>,
): OptionFlag<number>
export function number(
  helpValue: string,
  description: string,
  choice?: Choice & Bounds,
): OptionFlag<number | undefined>
export function number(helpValue: string, description: string, choice: Choice & Bounds = {}): Either<number> {
  return Flags.integer({ description, helpValue, ...choice })
}

/** Returns a flag that accepts one of these words. */
export function word<const Words extends readonly string[]>(
  options: Words,
  description: string,
  choice: Choice & { readonly default: Words[number] },
): OptionFlag<Words[number]>
export function word<const Words extends readonly string[]>(
  options: Words,
  description: string,
  choice?: Choice,
): OptionFlag<Words[number] | undefined>
export function word(options: readonly string[], description: string, choice: Choice = {}): Either<string> {
  return Flags.string({ description, options: [...options], ...choice })
}

/** -o; default is the first of the formats. */
export function format<const Formats extends readonly [string, ...string[]]>(
  formats: Formats,
  description: string,
): OptionFlag<Formats[number]> {
  return Flags.option({ char: 'o', options: formats, default: formats[0] })({ description })
}

export const reportFormats = ['text', 'json', 'yaml'] as const

export type ReportFormat = (typeof reportFormats)[number]

/** The formats of a command that prints a list: wide does not shorten or omit columns, jsonpath=TEMPLATE is kubectl's. */
export const listFormats = ['text', 'wide', 'json', 'yaml', 'jsonpath'] as const

export type ListFormat = (typeof listFormats)[number]

/** --no-headers, as in kubectl. */
export const noHeaders = boolean('print tables without headings')

/** -o and --no-headers of a command that prints a list. `More` are additional formats, which the description explains. */
export function listFlags<const More extends readonly string[]>(more: More, description = '') {
  const first =
    "output format; wide: no column is shortened or dropped; jsonpath='{TEMPLATE}': as in kubectl, over the fields of json"
  return {
    output: format([...listFormats, ...more], [first, description].filter(Boolean).join('; ')),
    'no-headers': noHeaders,
  }
}

/** -o of a command that prints one report. */
export const reportFormat = (description = 'output format') => format(reportFormats, description)

/** Returns the only operand of a command. */
export function operand(description: string) {
  return Args.string({ description, required: true, ignoreStdin: true })
}

/** Returns the operands of a command that takes any number of them. */
export function operands(description: string) {
  return Args.string({ description, multiple: true, ignoreStdin: true })
}

const helpGroup = 'CLUSTER'

/** The flags of every command that connects to a cluster, with kubectl's names. */
export const clusterFlags = {
  kubeconfig: value(
    'FILE',
    "kubeconfig (default $KUBECONFIG, ~/.kube/config, or the pod's service account)",
    { helpGroup },
  ),
  context: value('NAME', 'context of the kubeconfig (default its current-context)', { helpGroup }),
  cluster: value('NAME', "cluster of the kubeconfig (default the context's)", { helpGroup }),
  user: value('NAME', "user of the kubeconfig (default the context's)", { helpGroup }),
  server: value('URL', "URL of the API server (default the cluster's)", { helpGroup }),
  'certificate-authority': value(
    'FILE',
    "CA certificates that verify the API server (default the cluster's)",
    { helpGroup },
  ),
  'insecure-skip-tls-verify': boolean(
    'do not verify the API server: any server that answers receives your credentials',
    { helpGroup, exclusive: ['certificate-authority'] },
  ),
  token: value(
    'TOKEN',
    "bearer token to use instead of the user's credentials; other users of this machine can see it in the process list",
    { helpGroup },
  ),
  as: value('USER', 'user or service account to impersonate', { helpGroup }),
  'as-group': repeated('GROUP', 'group to impersonate; may be repeated', {
    helpGroup,
    dependsOn: ['as'],
  }),
  'request-timeout': value('DURATION', 'timeout of one request, such as 5s or 1m; 0 for none', {
    default: '30s',
    helpGroup,
  }),
}

const { cluster: clusterName, ...besideCluster } = clusterFlags
const { user: _, ...besideUser } = clusterFlags
const { server: __, ...besideServer } = clusterFlags
const { server: ___, ...besideBoth } = besideUser

/** The same for a command whose --cluster has another meaning. */
export const clusterFlagsBesideCluster = { ...besideCluster, 'cluster-name': clusterName }

/** Throws KCERT_USAGE for a flag that selects a cluster without --cluster. A kubeconfig may have been meant as an input. */
export function refuseClusterFlags(
  flags: Readonly<Record<string, unknown>> & { readonly cluster: boolean },
  otherwise?: string,
): void {
  const { 'request-timeout': _, ...ofCluster } = clusterFlagsBesideCluster
  const [flag] = Object.keys(ofCluster).filter((name) => flags[name])
  if (flags.cluster || flag === undefined) return
  throw new KcertError('KCERT_USAGE', `--${flag} requires --cluster`, {
    why: ['without --cluster kcert contacts no API server', otherwise].filter(Boolean).join('; '),
    next: '--cluster',
  })
}

/** The same for a command whose --user has another meaning. It opens its cluster with `user: undefined`. */
export const clusterFlagsBesideUser = besideUser

/** The same for a command whose --server has another meaning. With that flag, it opens no cluster. */
export const clusterFlagsBesideServer = besideServer

/** Both. */
export const clusterFlagsBesideUserAndServer = besideBoth

/** The flags that exclude a --server of another meaning. */
export const otherClusterFlags = [
  'kubeconfig',
  'context',
  'cluster',
  'certificate-authority',
  'insecure-skip-tls-verify',
  'token',
  'as',
]

export interface ClusterFlags extends AskedNames {
  readonly kubeconfig?: string | undefined
  readonly 'certificate-authority'?: string | undefined
  readonly 'insecure-skip-tls-verify'?: boolean
  readonly token?: string | undefined
  readonly as?: string | undefined
  readonly 'as-group'?: readonly string[] | undefined
  readonly 'request-timeout': string
  /** `kcert fleet` only: the context, which replaces all other flags, and the limits of its connections. */
  readonly chosen?: ChosenCluster | undefined
}

/** A context that was selected before, with limits for all connections to its cluster. */
export interface ChosenCluster extends Pick<ConnectionOptions, 'signal' | 'onBytes' | 'mostPageBytes'> {
  readonly selected: SelectedContext
  /** Receives the estimated memory of each part that is kept of the cluster, in bytes. */
  readonly onKept: (bytes: number) => void
}

/** The inventory that `kcert rotate-ca discover` writes, and that --all-nodes and `kcert rotate-ca` read by default. */
export const defaultInventory = 'kcert.yaml'

/** --inventory, with one name and one description in every command that reaches nodes. Undefined if it is not given. */
export const inventoryFlag = (fallback: string, choice: Pick<Choice, 'exclusive'> = {}) =>
  value('FILE', `inventory that says how to reach each node (default ${fallback})`, {
    ...choice,
    char: 'i',
    helpGroup: 'NODES',
  })

/** --inventory of a command that always reads one. */
export const requiredInventoryFlag = value('FILE', 'inventory that says how to reach each node', {
  char: 'i',
  default: defaultInventory,
  helpGroup: 'NODES',
})

/** Every node of the inventory: `--all-nodes`, in the style of kubectl's `--all-namespaces`. */
export const allNodesFlag = boolean(`all nodes of the inventory (without -i: ${defaultInventory})`, {
  helpGroup: 'NODES',
  exclusive: ['node'],
})

/** The flags that select nodes and how to reach them. */
export const nodeFlags = {
  inventory: inventoryFlag('this machine only'),
  'all-nodes': allNodesFlag,
  node: repeated('NAME', 'only this node; may be repeated', { helpGroup: 'NODES' }),
}

/** A folder with the files of one node, instead of running nodes. */
export const rootFlag = value(
  'DIR',
  "folder with a node's files: a copy, or the mounted disk of a machine that is off",
  { helpGroup: 'NODES', exclusive: ['inventory', 'all-nodes', 'node'] },
)

/** Returns the inventory that the flags name. Undefined: none, so the command's default applies. */
export function namedInventory(flags: {
  readonly inventory?: string | undefined
  readonly 'all-nodes'?: boolean | undefined
}): string | undefined {
  return flags.inventory ?? (flags['all-nodes'] ? defaultInventory : undefined)
}

/** The exit codes of every command that connects to a cluster, for its help. */
export const clusterExits = {
  unreachable: 'the API server could not be reached',
  notPermitted: 'the API server rejects your credentials (401) or the request (403)',
}
