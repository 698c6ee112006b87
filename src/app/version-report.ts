import * as v from 'valibot'
import { text } from '../errors/error-schema.ts'

export const versionSchema = v.object({
  apiVersion: v.literal('kcert/v1'),
  kind: v.literal('Version'),
  clientVersion: text('version of kcert'),
  nodeVersion: text('version of Node.js that runs kcert'),
  platform: text('operating system and architecture, as in linux/x64'),
  gitCommit: v.optional(text('commit that kcert was built from, if the build recorded one')),
})

export type VersionReport = v.InferOutput<typeof versionSchema>
