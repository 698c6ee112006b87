import * as v from 'valibot'
import * as json from '../errors/json-fields.ts'

// The JSON contract of `kcert explain-error`. docs/schemas/ErrorExplanation.json is generated from these schemas. The program
// imports only their types.

const names = json.texts

const foundSchema = v.object({
  endpoints: json.described(names, 'servers, as HOST:PORT'),
  serverName: json.optionalText('the name or address that the client used'),
  certificateNames: json.described(names, 'what the certificate is valid for'),
  currentTime: json.optionalText('clock of the program that rejected the certificate'),
  notAfter: v.optional(v.string()),
  notBefore: v.optional(v.string()),
  candidate: json.optionalText('CA with the right name that was tried and did not sign the certificate'),
  webhook: v.optional(v.string()),
  component: json.optionalField(
    v.picklist(['kubelet', 'kube-controller-manager', 'kube-scheduler']),
    'program that wrote the message, or that requests a certificate in it',
  ),
  isPluginFailed: json.optionalField(v.boolean(), 'the credential plugin of a kubeconfig ran and failed'),
  peer: json.optionalField(
    v.picklist([
      'api-server',
      'kubelet',
      'etcd',
      'mesh',
      'registry',
      'repository',
      'identity-provider',
      'acme',
      'other',
    ]),
    'what kind of server was called, from the text around the message, if its port does not show it',
  ),
  apiGroup: v.optional(v.string()),
  node: v.optional(v.string()),
  user: v.optional(v.string()),
  tokenId: v.optional(v.string()),
  files: names,
  side: json.described(
    v.picklist(['client', 'server', 'unknown']),
    'which side wrote the message: the program that connected, or the server',
  ),
})

/** Facts in the text around an error. */
export type Found = v.InferOutput<typeof foundSchema>

const causeSchema = v.object({
  id: v.string(),
  detail: v.string(),
  evidence: json.optionalText('evidence in the text'),
  checks: json.described(
    json.objects({ command: v.string(), shows: json.text('what the command shows when this is the cause') }),
    'checks that distinguish this cause from the others',
  ),
})

export const errorExplanationSchema = v.object({
  ...json.header('ErrorExplanation'),
  source: json.text('the file, "-" for standard input, "argument" for text of the command line'),
  errors: json.described(
    json.objects({
      id: v.string(),
      message: json.text('the known message in the text, without the text around it'),
      line: json.described(v.number(), 'of the text, counted from 1'),
      count: json.described(v.number(), 'how often the text contains it'),
      meaning: v.string(),
      found: json.described(foundSchema, 'facts in the text around the message'),
      causes: json.described(v.array(causeSchema), 'the likeliest first'),
    }),
    'empty if kcert knows no message in the text',
  ),
  subject: json.optionalField(
    v.picklist(['certificates', 'other']),
    'if no error was recognized: whether the text is about certificates, TLS or identity',
  ),
  next: json.described(
    json.objects({ command: v.string(), shows: v.string() }),
    'what to do when no error was recognized',
  ),
})

export type ErrorExplanation = v.InferOutput<typeof errorExplanationSchema>
