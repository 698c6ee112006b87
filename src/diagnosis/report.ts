import * as v from 'valibot'

// The JSON contract of `kcert explain-error`. docs/schemas/ErrorExplanation.json is generated from these schemas; the program
// itself imports their types alone.

const names = v.array(v.string())

const foundSchema = v.object({
  endpoints: v.pipe(names, v.description('servers, as HOST:PORT')),
  wantedName: v.optional(v.pipe(v.string(), v.description('the name or address that the client used'))),
  certificateNames: v.pipe(names, v.description('what the certificate is valid for')),
  currentTime: v.optional(v.pipe(v.string(), v.description('the clock of the program that refused'))),
  notAfter: v.optional(v.string()),
  notBefore: v.optional(v.string()),
  candidate: v.optional(
    v.pipe(v.string(), v.description('the CA of the same name that was tried and does not fit')),
  ),
  webhook: v.optional(v.string()),
  by: v.optional(
    v.pipe(
      v.picklist(['kubelet', 'kube-controller-manager', 'kube-scheduler']),
      v.description('who wrote it, or asks for a certificate in it'),
    ),
  ),
  isPluginFailed: v.optional(
    v.pipe(v.boolean(), v.description('the credential plugin of a kubeconfig ran and failed')),
  ),
  peer: v.optional(
    v.pipe(
      v.picklist([
        'api-server',
        'kubelet',
        'etcd',
        'mesh',
        'registry',
        'repository',
        'identity-provider',
        'acme',
        'elsewhere',
      ]),
      v.description('what was called, where the words around tell and not its port'),
    ),
  ),
  apiGroup: v.optional(v.string()),
  node: v.optional(v.string()),
  user: v.optional(v.string()),
  tokenId: v.optional(v.string()),
  files: names,
  side: v.pipe(
    v.picklist(['client', 'server', 'unknown']),
    v.description('who wrote it: the program that connected, or the one that was connected to'),
  ),
})

/** What stands around the words of an error. */
export type Found = v.InferOutput<typeof foundSchema>

const causeSchema = v.object({
  id: v.string(),
  detail: v.string(),
  evidence: v.optional(v.pipe(v.string(), v.description('what in the text speaks for it'))),
  checks: v.pipe(
    v.array(
      v.object({
        command: v.string(),
        shows: v.pipe(v.string(), v.description('what it shows when this is the cause')),
      }),
    ),
    v.description('what tells this cause from the others'),
  ),
})

export const errorExplanationSchema = v.object({
  apiVersion: v.literal('kcert/v1'),
  kind: v.literal('ErrorExplanation'),
  source: v.pipe(
    v.string(),
    v.description('the file, "-" for standard input, "argument" for text of the command line'),
  ),
  errors: v.pipe(
    v.array(
      v.object({
        id: v.string(),
        words: v.pipe(v.string(), v.description('as they stand in the text, and nothing around them')),
        line: v.pipe(v.number(), v.description('of the text, counted from 1')),
        times: v.pipe(v.number(), v.description('how often it stands there')),
        means: v.string(),
        found: v.pipe(foundSchema, v.description('what stands around the words')),
        causes: v.pipe(v.array(causeSchema), v.description('the likeliest first')),
      }),
    ),
    v.description('empty when kcert knows none of the words'),
  ),
  subject: v.optional(
    v.pipe(
      v.picklist(['certificates', 'other']),
      v.description(
        'where no error was recognised: whether anything in the text speaks of certificates, TLS or identity',
      ),
    ),
  ),
  next: v.pipe(
    v.array(v.object({ command: v.string(), shows: v.string() })),
    v.description('what to do when no error was recognised'),
  ),
})

export type ErrorExplanation = v.InferOutput<typeof errorExplanationSchema>
