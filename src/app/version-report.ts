import * as v from 'valibot'
import { header, optionalText, text } from '../errors/json-fields.ts'

export const versionSchema = v.object({
  ...header('Version'),
  clientVersion: text('version of kcert'),
  nodeVersion: text('version of Node.js that runs kcert'),
  platform: text('operating system and architecture, as in linux/x64'),
  gitCommit: optionalText('commit that kcert was built from, if the build recorded one'),
})

export type VersionReport = v.InferOutput<typeof versionSchema>
