import * as v from 'valibot'
import * as json from '../errors/json-fields.ts'

// The JSON contract of `kcert kubeconfig`. It contains no keys and tokens of a kubeconfig.

const contextSchema = v.object({
  name: v.string(),
  cluster: v.string(),
  user: v.string(),
  outcome: json.described(
    v.picklist(['works', 'fails', 'unreachable']),
    'works: the server certificate is trusted, and the API server authenticates the user',
  ),
  username: json.optionalText('user name that the API server authenticates'),
  groups: v.optional(json.texts),
  error: v.optional(json.errorSchema),
})

export const kubeconfigEditSchema = v.object({
  ...json.header('KubeconfigEdit'),
  outcome: v.picklist(['edited', 'unchanged', 'would-edit']),
  file: v.string(),
  clusters: json.texts,
  users: json.texts,
  diff: json.described(json.texts, 'lines of the change; long values are shortened, credentials are hidden'),
  backup: v.optional(v.string()),
  contexts: json.optionalField(v.array(contextSchema), 'with --verify'),
  notices: json.texts,
})

export const createdKubeconfigSchema = v.object({
  ...json.header('CreatedKubeconfig'),
  outcome: v.picklist(['written', 'would-write']),
  file: v.string(),
  server: v.string(),
  cluster: v.string(),
  user: v.string(),
  credential: v.picklist(['client certificate', 'token']),
  notAfter: v.optional(v.pipe(v.string(), v.isoTimestamp())),
  contexts: json.optionalField(v.array(contextSchema), 'with --verify'),
  notices: json.texts,
})

export type ContextReport = v.InferOutput<typeof contextSchema>
export type KubeconfigEdit = v.InferOutput<typeof kubeconfigEditSchema>
export type CreatedKubeconfig = v.InferOutput<typeof createdKubeconfigSchema>
