import type { RotationStatus } from '../../rotation/report.ts'
import { html, type Markup } from '../html/markup.ts'
import { badge, page, section, type Tone, table, time } from '../html/page.ts'
import { axis, bar } from '../html/timeline.ts'
import { timeLeft } from '../time.ts'
import { groupsOf, lastRunText, progressText, riskTexts, roleOf, stateText } from './status.ts'

type PhaseView = RotationStatus['phases'][number]
type NodeView = RotationStatus['nodes'][number]

const toneOfState: Readonly<Record<PhaseView['state'], Tone>> = {
  complete: 'good',
  incomplete: 'warning',
  waiting: 'quiet',
}

/** Returns the state of the rotation as one page: phases with their pending items, expiry of the CAs, and nodes. */
export function renderStatusHtml(status: RotationStatus): string {
  return page({ title: 'CA rotation', generatedAt: status.generatedAt }, [
    html`<p class="lead">${progressText(status)}</p>
`,
    nextPart(status),
    section(
      'Phases',
      html`<ol class="phases">
${status.phases.map(phaseItem)}</ol>
`,
    ),
    caSection(status),
    nodeSection(status.nodes),
  ])
}

function nextPart({ next, blockers }: RotationStatus): Markup {
  if (blockers.length > 0) {
    return html`<ul class="plain">${blockers.map(
      ({ what, why, next: cure }) =>
        html`<li class="bad">${badge('blocked', 'bad')} <strong>${what}</strong><p>${why}</p><p>Next: <code>${cure}</code></p></li>`,
    )}</ul>
`
  }
  if (next === undefined) return html`<p>Nothing left to do.</p>\n`
  return html`<p>Next: <code>${next.command}</code><br><span class="faint">${next.why}</span></p>
`
}

function phaseItem(phase: PhaseView): Markup {
  const { number, title, risk, state, remarks, evidence, lastRun } = phase
  return html`<li class="${toneOfState[state]}" data-number="${number}">
<h3>Phase ${number}: ${title}</h3>
<p>${badge(stateText(phase), toneOfState[state])} <span class="faint">risk: ${riskTexts[risk]}${lastRun === undefined ? '' : `; last run ${lastRunText(lastRun)}`}</span></p>
${state === 'incomplete' ? gateDetails(phase) : undefined}${remarks.map((remark) => html`<p class="faint">Note: ${remark}</p>\n`)}${
  evidence.length === 0
    ? undefined
    : html`<details><summary>${evidence.length} verified</summary>${table(
        'The last result of each check.',
        [
          { title: 'What', kind: 'name', cell: ({ key }) => key },
          {
            title: 'Result',
            kind: 'short',
            cell: ({ ok }) => badge(ok ? 'passed' : 'failed', ok ? 'good' : 'bad'),
          },
          { title: 'Age', kind: 'short', cell: ({ ageSeconds }) => timeLeft(ageSeconds) },
          { title: 'Detail', cell: ({ detail }) => detail },
        ],
        evidence,
      )}</details>
`
}</li>
`
}

/** The pending items of a phase, by location. */
function gateDetails({ pending }: PhaseView): Markup {
  return html`<details open><summary>Pending</summary>${table(
    'The phase is complete when this list is empty.',
    [
      { title: 'At', kind: 'name', cell: ({ at }) => at },
      { title: 'What', cell: ({ what }) => what },
    ],
    groupsOf(pending),
  )}</details>
`
}

function caSection({ cas, generatedAt }: RotationStatus): Markup {
  const rows = cas.flatMap(({ ca, oldCa, newCa }) => [
    { name: `old ${ca} CA`, ...oldCa },
    { name: `new ${ca} CA`, ...newCa },
  ])
  const timeline = (notAfter: string): Markup => {
    const secondsLeft = (Date.parse(notAfter) - Date.parse(generatedAt)) / 1000
    return bar(secondsLeft, secondsLeft < 0 ? 'bad' : 'good', timeLeft(secondsLeft))
  }
  return section(
    'When the CAs expire',
    table(
      'The bar is the time left; the scale is not linear.',
      [
        { title: 'CA', kind: 'name', cell: ({ name }) => name },
        { title: 'Subject', cell: ({ subject }) => subject },
        {
          title: 'Expires',
          kind: 'short',
          cell: ({ notAfter }) => (notAfter === undefined ? 'created in phase 1' : time(notAfter)),
        },
        {
          title: 'Timeline',
          kind: 'bar',
          cell: ({ notAfter }) => (notAfter === undefined ? '' : timeline(notAfter)),
        },
      ],
      rows,
      axis(),
    ),
  )
}

function nodeSection(nodes: readonly NodeView[]): Markup {
  return section(
    'Nodes',
    table<NodeView>(
      'Nodes, and the phases with something pending on each.',
      [
        { title: 'Node', kind: 'name', cell: ({ name }) => name },
        { title: 'Role', cell: roleOf },
        {
          title: 'State',
          cell: ({ isReady, unreachable }) =>
            unreachable === undefined
              ? badge(isReady ? 'Ready' : 'not Ready', isReady ? 'good' : 'bad')
              : html`${badge('unreachable', 'bad')} ${unreachable}`,
        },
        { title: 'Pending in phases', cell: ({ pendingPhases }) => pendingPhases.join(', ') || 'none' },
      ],
      nodes,
    ),
  )
}
