import * as v from 'valibot'
import { timeSchema as time } from '../../x509/json-fields.ts'

// The JSON contract of `kcert kubelet doctor`. docs/schemas/ is generated from it; the program itself only imports its type.

const findingSchema = v.object({
  id: v.string(),
  severity: v.picklist(['critical', 'warning', 'info']),
  path: v.string(),
  what: v.string(),
  why: v.string(),
  next: v.string(),
  fixable: v.pipe(v.boolean(), v.description('--fix mends it with what lies there, after a copy')),
})

export const kubeletDiagnosisSchema = v.object({
  apiVersion: v.literal('kcert/v1'),
  kind: v.literal('KubeletDiagnosis'),
  generatedAt: time,
  nodes: v.array(
    v.object({
      node: v.string(),
      folder: v.string(),
      findings: v.pipe(v.array(findingSchema), v.description('as they are now; after --fix what is left')),
      fixed: v.pipe(v.array(findingSchema), v.description('what --fix has mended')),
      kubelet: v.pipe(
        v.picklist(['running', 'not-running', 'restarted', 'unknown']),
        v.description('unknown: a tree of files, on which nothing runs'),
      ),
      backup: v.optional(v.pipe(v.string(), v.description('folder with what was replaced, by whole paths'))),
      unreachable: v.optional(v.string()),
    }),
  ),
})

export type KubeletDiagnosis = v.InferOutput<typeof kubeletDiagnosisSchema>
