import type { RotationStatus } from '../../rotation/report.ts'
import { html, type Markup } from '../html/markup.ts'
import { badge, page, section, type Tone, table, time } from '../html/page.ts'
import { axis, bar } from '../html/timeline.ts'
import { minuteOf, timeLeft } from '../time.ts'
import { groupsOf, progressText } from './status.ts'

type PhaseView = RotationStatus['phases'][number]
type NodeView = RotationStatus['nodes'][number]

const toneOfState: Readonly<Record<PhaseView['state'], Tone>> = {
  holds: 'good',
  open: 'warning',
  later: 'quiet',
}

/** Returns where the rotation stands as one page: the phases in their order with their gates, when the CAs end, and the nodes. */
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
    authoritySection(status),
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
  if (next === undefined) return html`<p>Nothing is left to do.</p>\n`
  return html`<p>Next: <code>${next.command}</code><br><span class="faint">${next.why}</span></p>
`
}

function phaseItem(phase: PhaseView): Markup {
  const { number, title, risk, state, gaps, remarks, evidence, lastRun } = phase
  const word = state === 'open' ? `${gaps.length} open` : state
  return html`<li class="${toneOfState[state]}" data-number="${number}">
<h3>Phase ${number}: ${title}</h3>
<p>${badge(word, toneOfState[state])} <span class="faint">risk: ${risk}${lastRun === undefined ? '' : `; last run ${lastRun.event} ${minuteOf(lastRun.at)}`}</span></p>
${state === 'open' ? gateDetails(phase) : undefined}${remarks.map((remark) => html`<p class="faint">Note: ${remark}</p>\n`)}${
  evidence.length === 0
    ? undefined
    : html`<details><summary>${evidence.length} proven</summary>${table(
        'The last answer of each probe.',
        [
          { title: 'What', kind: 'name', cell: ({ key }) => key },
          { title: 'Answer', kind: 'short', cell: ({ ok }) => badge(ok ? 'yes' : 'no', ok ? 'good' : 'bad') },
          { title: 'Age', kind: 'short', cell: ({ ageSeconds }) => timeLeft(ageSeconds) },
          { title: 'Detail', cell: ({ detail }) => detail },
        ],
        evidence,
      )}</details>
`
}</li>
`
}

/** The gate of a phase is what is not so yet, where. */
function gateDetails({ gaps }: PhaseView): Markup {
  return html`<details open><summary>What is open</summary>${table(
    'The phase holds when nothing of this is left.',
    [
      { title: 'At', kind: 'name', cell: ({ at }) => at },
      { title: 'What', cell: ({ what }) => what },
    ],
    groupsOf(gaps),
  )}</details>
`
}

function authoritySection({ authorities, generatedAt }: RotationStatus): Markup {
  const rows = authorities.flatMap(({ ca, oldCa, newCa }) => [
    { name: `old ${ca} CA`, ...oldCa },
    { name: `new ${ca} CA`, ...newCa },
  ])
  const timeline = (notAfter: string): Markup => {
    const secondsLeft = (Date.parse(notAfter) - Date.parse(generatedAt)) / 1000
    return bar(secondsLeft, secondsLeft < 0 ? 'bad' : 'good', timeLeft(secondsLeft))
  }
  return section(
    'When the CAs end',
    table(
      'The bar is the time that is left; its scale grows with the distance from now.',
      [
        { title: 'CA', kind: 'name', cell: ({ name }) => name },
        { title: 'Subject', cell: ({ subject }) => subject },
        {
          title: 'Ends',
          kind: 'short',
          cell: ({ notAfter }) => (notAfter === undefined ? 'made in phase 1' : time(notAfter)),
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
      'Where something is open, by the numbers of the phases.',
      [
        { title: 'Node', kind: 'name', cell: ({ name }) => name },
        { title: 'Role', cell: ({ isControlPlane }) => (isControlPlane ? 'control plane' : 'worker') },
        {
          title: 'State',
          cell: ({ isReady, unreachable }) =>
            unreachable === undefined
              ? badge(isReady ? 'Ready' : 'not Ready', isReady ? 'good' : 'bad')
              : html`${badge('no answer', 'bad')} ${unreachable}`,
        },
        { title: 'Open in phases', cell: ({ openPhases }) => openPhases.join(', ') || 'none' },
      ],
      nodes,
    ),
  )
}
