import type { CheckReport } from '../csr/check-report.ts'
import { markedLines } from './check-lines.ts'
import { type Field, fieldLines } from './fields.ts'
import { altNameList, keyText } from './names.ts'
import { adviceLines, indentedLines, joinSections } from './sections.ts'
import type { StatusText } from './table.ts'
import type { View } from './view.ts'

type Question = CheckReport['rules'][number]['question']

const questionText: Readonly<Record<Question, string>> = {
  admission: 'Will the API server accept it?',
  approval: 'Should an approver approve it?',
  signing: 'Will the signer sign it?',
}

const signingAnswers: Readonly<Record<CheckReport['answers']['signing'], StatusText>> = {
  signed: ['yes', 'ok'],
  failed: ['NO: it would set the condition Failed', 'critical'],
  retried: [
    'NO: kube-controller-manager cannot verify the signature of the CSR, and would retry forever',
    'critical',
  ],
  'no-signer': ['NO: this signer does not exist', 'critical'],
  'other-signer': ['unknown: kcert does not know its rules', 'ok'],
}

const decisions: Readonly<Record<CheckReport['decision'], StatusText>> = {
  approve: ['yes', 'ok'],
  ignore: ['not decided', 'warning'],
  deny: ['NO: deny it', 'critical'],
}

/** Returns the check as text: the request, the three questions with all rules, the rules whose result is unknown, and the decision. */
export function renderCheck(report: CheckReport, view: View): string {
  return joinSections([
    fieldLines(view, requestFields(report)),
    ...(['admission', 'approval', 'signing'] as const).map((question) =>
      questionLines(report, question, view),
    ),
    noteLines(report, view),
    decisionLines(report, view),
  ])
}

function requestFields({ spec, request }: CheckReport): Field[] {
  const groups = spec.groups.length > 0 ? ` (${spec.groups.join(', ')})` : ''
  return [
    ['object', spec.name],
    ['subject', request && (request.subject.text || '(empty)')],
    [
      'SANs',
      request && [...altNameList(request.subjectAltNames), ...request.subjectAltNames.other].join(', '),
    ],
    ['key', request && keyText(request.publicKey)],
    ['signer', spec.signerName],
    ['usages', spec.usages.join(', ')],
    ['lifetime', spec.expirationSeconds === undefined ? undefined : `${spec.expirationSeconds} s`],
    ['requester', spec.username === undefined ? undefined : `${spec.username}${groups}`],
  ]
}

function questionLines(report: CheckReport, question: Question, view: View): string[] {
  const [answer, tone] = answerTo(report, question)
  const marked = [
    ...report.rules.map((rule) => ({ ...rule, mark: rule.ok ? ('ok' as const) : ('NO' as const) })),
    ...report.unknownFacts.map((rule) => ({ ...rule, mark: '?' as const })),
  ].filter((rule) => rule.question === question)
  if (marked.length === 0 && question !== 'approval') return []
  const { heading, status } = view.paint
  return [`${heading(questionText[question])} ${status[tone](answer)}`, ...markedLines(marked, view)]
}

function answerTo({ answers, decision, isSubmitted }: CheckReport, question: Question): StatusText {
  if (question === 'signing') return signingAnswers[answers.signing]
  if (question === 'admission') return answers.admission === 'accepted' ? ['yes', 'ok'] : ['NO', 'critical']
  if (decision === 'approve' && !isSubmitted) return ['no objections', 'ok']
  return decisions[decision]
}

function noteLines({ advice }: CheckReport, view: View): string[] {
  if (advice.length === 0) return []
  return [
    view.paint.heading('Notes'),
    ...advice.flatMap(({ detail, fix, next }) => [
      ...indentedLines(detail, '  ', view),
      ...adviceLines({ fix, next }),
    ]),
  ]
}

const outcomes = { met: 'met:', unknown: 'unknown whether', unmet: 'unmet; required:' } as const

function decisionLines({ decision, reason, duties }: CheckReport, view: View): string[] {
  const { paint } = view
  const stroke = { met: paint.status.ok, unknown: paint.status.warning, unmet: paint.status.critical }
  return fieldLines(view, [
    ...duties.map(
      ({ name, text, outcome }): Field => [name, `${outcomes[outcome]} ${text}`, stroke[outcome]],
    ),
    ['decision', `${decision}: ${reason}`, paint.status[decisions[decision][1]]],
  ])
}
