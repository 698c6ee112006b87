import type { Asker, ChoiceQuestion, TextQuestion } from '../../cli/prompts.ts'
import { altNamesOf } from '../../csr/request-spec.ts'
import { signerNameDefect } from '../../csr/signer-name.ts'
import { messageOf } from '../../errors/kcert-error.ts'
import { isSubdomain } from '../../x509/plain-names.ts'

// The prompts of `kcert csr create`. The answers become a command line, which then runs as if it had been typed.

const purpose: ChoiceQuestion<keyof typeof nameQuestions> = {
  flag: 'user',
  message: 'Who is the certificate for?',
  choices: [
    { value: 'user', name: 'a user of the cluster' },
    { value: 'kubelet-client', name: 'a kubelet, as a client of the API server' },
    { value: 'kubelet-serving', name: 'a kubelet, as a server' },
    { value: 'service', name: 'a Service' },
    { value: 'cn', name: 'something else' },
  ],
}

const required = (answer: string): string | undefined => (answer === '' ? 'it cannot be empty' : undefined)

const nameQuestions = {
  user: { flag: 'user', message: 'Name of the user', fault: required },
  'kubelet-client': { flag: 'kubelet-client', message: 'Name of the Node', fault: nodeFault },
  'kubelet-serving': { flag: 'kubelet-serving', message: 'Name of the Node', fault: nodeFault },
  service: { flag: 'service', message: 'Name of the Service, as NAME.NAMESPACE', fault: serviceFault },
  cn: { flag: 'cn', message: 'Common name', fault: required },
} satisfies Readonly<Record<string, TextQuestion>>

const groups: TextQuestion = { flag: 'org', message: 'Groups, separated by commas (Enter for none)' }
const dnsNames: TextQuestion = {
  flag: 'dns',
  message: 'DNS names, separated by commas (Enter for none)',
  fault: (answer) => faultOf(() => altNamesOf({ dns: listOf(answer) })),
}
const addresses: TextQuestion = {
  flag: 'ip',
  message: 'IP addresses, separated by commas (Enter for none)',
  fault: (answer) => faultOf(() => altNamesOf({ ip: listOf(answer) })),
}
const format: ChoiceQuestion = {
  flag: 'output',
  message: 'Output format',
  choices: [
    { value: 'pem', name: 'CSR (PEM)' },
    { value: 'manifest', name: 'manifest for kubectl apply (YAML)' },
  ],
}
const signer: TextQuestion = {
  flag: 'signer',
  message: 'Signer',
  default: 'example.com/serving',
  fault: (answer) => {
    const defect = signerNameDefect(answer)
    return defect && `the name ${defect}`
  },
}
const usage: ChoiceQuestion = {
  flag: 'usage',
  message: 'What is the certificate for?',
  choices: [
    { value: 'digital signature,server auth', name: 'a server' },
    { value: 'digital signature,client auth', name: 'a client' },
    { value: 'digital signature,server auth,client auth', name: 'both' },
  ],
}
const keyFile: TextQuestion = { flag: 'key-out', message: 'File for the new private key', fault: required }
const outFile: TextQuestion = {
  flag: 'out',
  message: 'Output file (- to print it)',
  fault: required,
}

/** All questions, for the test that each one has a flag. */
export const requestQuestions: readonly (TextQuestion | ChoiceQuestion)[] = [
  purpose,
  ...Object.values(nameQuestions),
  groups,
  dnsNames,
  addresses,
  format,
  signer,
  usage,
  keyFile,
  outFile,
]

/** Asks for the settings of a request, and returns the equivalent flags. */
export async function askForRequest(asker: Asker): Promise<string[]> {
  const kind = await asker.choice(purpose)
  const name = await asker.text(nameQuestions[kind])
  const words = [`--${kind}`, name]
  if (kind === 'user' || kind === 'cn') words.push(...(await listWords(asker, groups)))
  if (kind !== 'user' && kind !== 'kubelet-client')
    words.push(...(await listWords(asker, dnsNames)), ...(await listWords(asker, addresses)))
  words.push(...(await manifestWords(asker, kind)))
  const base = name.replaceAll(/[^A-Za-z0-9._-]+/g, '-').replace(/^-+/, '') || 'request'
  words.push('--key-out', await asker.text({ ...keyFile, default: `${base}-key.pem` }))
  const suffix = words.includes('manifest') ? 'yaml' : 'csr'
  words.push('--out', await asker.text({ ...outFile, default: `${base}.${suffix}` }))
  return words
}

async function manifestWords(asker: Asker, kind: string): Promise<string[]> {
  if ((await asker.choice(format)) === 'pem') return []
  const words = ['--output', 'manifest']
  if (kind === 'service' || kind === 'cn') words.push('--signer', await asker.text(signer))
  if (kind === 'cn') words.push('--usage', await asker.choice(usage))
  return words
}

async function listWords(asker: Asker, question: TextQuestion): Promise<string[]> {
  return listOf(await asker.text(question)).flatMap((value) => [`--${question.flag}`, value])
}

function listOf(answer: string): string[] {
  return answer
    .split(',')
    .map((value) => value.trim())
    .filter((value) => value !== '')
}

function nodeFault(answer: string): string | undefined {
  return isSubdomain(answer) ? undefined : 'a Node name has lower-case letters, digits, "-" and "."'
}

function serviceFault(answer: string): string | undefined {
  return /^[^.]+\.[^.]+$/.test(answer) && isSubdomain(answer) ? undefined : 'write it as NAME.NAMESPACE'
}

function faultOf(check: () => unknown): string | undefined {
  try {
    check()
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}
