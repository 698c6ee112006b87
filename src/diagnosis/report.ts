import * as v from 'valibot'
import { described, header, optionalText, text, texts } from '../errors/json-fields.ts'

// The JSON contract of `kcert explain-error`. docs/schemas/ErrorExplanation.json is generated from these schemas. The program
// imports only their types.

const names = texts

const foundSchema = v.object({
  endpoints: described(names, 'servers, as HOST:PORT'),
  serverName: optionalText('the name or address that the client used'),
  certificateNames: described(names, 'what the certificate is valid for'),
  currentTime: optionalText('clock of the program that rejected the certificate'),
  notAfter: v.optional(v.string()),
  notBefore: v.optional(v.string()),
  candidate: optionalText('CA with the right name that was tried and did not sign the certificate'),
  webhook: v.optional(v.string()),
  component: v.optional(
    described(
      v.picklist(['kubelet', 'kube-controller-manager', 'kube-scheduler']),
      'program that wrote the message, or that requests a certificate in it',
    ),
  ),
  isPluginFailed: v.optional(described(v.boolean(), 'the credential plugin of a kubeconfig ran and failed')),
  peer: v.optional(
    described(
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
  ),
  apiGroup: v.optional(v.string()),
  node: v.optional(v.string()),
  user: v.optional(v.string()),
  tokenId: v.optional(v.string()),
  files: names,
  side: described(
    v.picklist(['client', 'server', 'unknown']),
    'which side wrote the message: the program that connected, or the server',
  ),
})

/** Facts in the text around an error. */
export type Found = v.InferOutput<typeof foundSchema>

const causeSchema = v.object({
  id: v.string(),
  detail: v.string(),
  evidence: optionalText('evidence in the text'),
  checks: described(
    v.array(v.object({ command: v.string(), shows: text('what the command shows when this is the cause') })),
    'checks that distinguish this cause from the others',
  ),
})

export const errorExplanationSchema = v.object({
  ...header('ErrorExplanation'),
  source: text('the file, "-" for standard input, "argument" for text of the command line'),
  errors: described(
    v.array(
      v.object({
        id: v.string(),
        message: text('the known message in the text, without the text around it'),
        line: described(v.number(), 'of the text, counted from 1'),
        count: described(v.number(), 'how often the text contains it'),
        meaning: v.string(),
        found: described(foundSchema, 'facts in the text around the message'),
        causes: described(v.array(causeSchema), 'the likeliest first'),
      }),
    ),
    'empty if kcert knows no message in the text',
  ),
  subject: v.optional(
    described(
      v.picklist(['certificates', 'other']),
      'if no error was recognized: whether the text is about certificates, TLS or identity',
    ),
  ),
  next: described(
    v.array(v.object({ command: v.string(), shows: v.string() })),
    'what to do when no error was recognized',
  ),
})

export type ErrorExplanation = v.InferOutput<typeof errorExplanationSchema>
