import * as v from 'valibot'
import { errorSchema } from '../errors/error-schema.ts'

// The JSON contract of `kcert kubeconfig`. It contains no keys and tokens of a kubeconfig.

const contextSchema = v.object({
  name: v.string(),
  cluster: v.string(),
  user: v.string(),
  outcome: v.pipe(
    v.picklist(['works', 'fails', 'unreachable']),
    v.description('works: the server certificate is trusted, and the API server authenticates the user'),
  ),
  username: v.optional(v.pipe(v.string(), v.description('user name that the API server authenticates'))),
  groups: v.optional(v.array(v.string())),
  error: v.optional(errorSchema),
})

export const kubeconfigEditSchema = v.object({
  apiVersion: v.literal('kcert/v1'),
  kind: v.literal('KubeconfigEdit'),
  outcome: v.picklist(['edited', 'unchanged', 'would-edit']),
  file: v.string(),
  clusters: v.array(v.string()),
  users: v.array(v.string()),
  diff: v.pipe(
    v.array(v.string()),
    v.description('lines of the change; long values are shortened, credentials are hidden'),
  ),
  backup: v.optional(v.string()),
  contexts: v.optional(v.pipe(v.array(contextSchema), v.description('with --verify'))),
  notices: v.array(v.string()),
})

export const createdKubeconfigSchema = v.object({
  apiVersion: v.literal('kcert/v1'),
  kind: v.literal('CreatedKubeconfig'),
  outcome: v.picklist(['written', 'would-write']),
  file: v.string(),
  server: v.string(),
  cluster: v.string(),
  user: v.string(),
  credential: v.picklist(['client certificate', 'token']),
  notAfter: v.optional(v.pipe(v.string(), v.isoTimestamp())),
  contexts: v.optional(v.pipe(v.array(contextSchema), v.description('with --verify'))),
  notices: v.array(v.string()),
})

export type ContextReport = v.InferOutput<typeof contextSchema>
export type KubeconfigEdit = v.InferOutput<typeof kubeconfigEditSchema>
export type CreatedKubeconfig = v.InferOutput<typeof createdKubeconfigSchema>
