import * as v from 'valibot'
import * as json from '../errors/json-fields.ts'

export const versionSchema = v.object({
  ...json.header('Version'),
  clientVersion: json.text('version of kcert'),
  nodeVersion: json.text('version of Node.js that runs kcert'),
  platform: json.text('operating system and architecture, as in linux/x64'),
  gitCommit: json.optionalText('commit that kcert was built from, if the build recorded one'),
})

export type VersionReport = v.InferOutput<typeof versionSchema>
