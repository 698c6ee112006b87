import * as v from 'valibot'
import { described, errorSchema, header, optionalText, texts } from '../errors/json-fields.ts'

// The JSON contract of `kcert kubeconfig`. It contains no keys and tokens of a kubeconfig.

const contextSchema = v.object({
  name: v.string(),
  cluster: v.string(),
  user: v.string(),
  outcome: described(
    v.picklist(['works', 'fails', 'unreachable']),
    'works: the server certificate is trusted, and the API server authenticates the user',
  ),
  username: optionalText('user name that the API server authenticates'),
  groups: v.optional(texts),
  error: v.optional(errorSchema),
})

export const kubeconfigEditSchema = v.object({
  ...header('KubeconfigEdit'),
  outcome: v.picklist(['edited', 'unchanged', 'would-edit']),
  file: v.string(),
  clusters: texts,
  users: texts,
  diff: described(texts, 'lines of the change; long values are shortened, credentials are hidden'),
  backup: v.optional(v.string()),
  contexts: v.optional(described(v.array(contextSchema), 'with --verify')),
  notices: texts,
})

export const createdKubeconfigSchema = v.object({
  ...header('CreatedKubeconfig'),
  outcome: v.picklist(['written', 'would-write']),
  file: v.string(),
  server: v.string(),
  cluster: v.string(),
  user: v.string(),
  credential: v.picklist(['client certificate', 'token']),
  notAfter: v.optional(v.pipe(v.string(), v.isoTimestamp())),
  contexts: v.optional(described(v.array(contextSchema), 'with --verify')),
  notices: texts,
})

export type ContextReport = v.InferOutput<typeof contextSchema>
export type KubeconfigEdit = v.InferOutput<typeof kubeconfigEditSchema>
export type CreatedKubeconfig = v.InferOutput<typeof createdKubeconfigSchema>
