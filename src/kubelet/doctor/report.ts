import * as v from 'valibot'
import * as json from '../../x509/json-fields.ts'

// The JSON contract of `kcert kubelet doctor`. docs/schemas/ is generated from it; the program itself only imports its type.

const findingSchema = v.object({
  id: v.string(),
  severity: v.picklist(['critical', 'warning', 'info']),
  path: v.string(),
  what: v.string(),
  why: v.string(),
  fix: v.optional(v.string()),
  next: v.string(),
  fixable: json.described(v.boolean(), '--fix repairs it with the files on the node, after a backup'),
})

export const kubeletDiagnosisSchema = v.object({
  ...json.header('KubeletDiagnosis'),
  generatedAt: json.time,
  nodes: json.objects({
    node: v.string(),
    folder: v.string(),
    findings: json.described(v.array(findingSchema), 'as they are now; after --fix what is left'),
    fixed: json.described(v.array(findingSchema), 'findings that --fix has repaired'),
    kubelet: json.described(
      v.picklist(['running', 'not-running', 'restarted', 'unknown']),
      'unknown: a tree of files, on which nothing runs',
    ),
    backup: json.optionalText('folder with the replaced files, under their full paths'),
    unreachable: v.optional(v.string()),
  }),
})

export type KubeletDiagnosis = v.InferOutput<typeof kubeletDiagnosisSchema>
