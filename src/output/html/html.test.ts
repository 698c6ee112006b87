import { expect, test } from 'vitest'
import { certificateReport, goldenReport, reportOf } from '../../../test/reports/golden-report.ts'
import { type Element, elementsOf, readHtml, textOf } from '../../../test/reports/html-reading.ts'
import { expectSelfContained } from '../../../test/reports/page-rules.ts'
import { sampleStatus } from '../../../test/reports/rotation-status.ts'
import { renderHtml } from '../inspection/html.ts'
import { shownStatus } from '../inspection/status.ts'
import { verdictsOf } from '../inspection/verdict.ts'
import { renderStatusHtml } from '../rotation/html.ts'
import { html } from './markup.ts'
import { style } from './style.ts'
import { positionOf } from './timeline.ts'

const hostile = `</title></style><script>alert(1)</script><img src=x onerror=alert(1)> "' onload='x' \`\u202eevil\x1b[2J &amp; <!--`
const hostileReport = reportOf(
  certificateReport({
    source: hostile,
    entry: hostile,
    role: hostile,
    notAfter: '2026-12-21T09:00:00Z',
    status: 'ok',
    subject: { text: hostile, commonName: hostile, organization: [hostile] },
    subjectAltNames: { dns: [hostile], ip: [], email: [], uri: [hostile] },
    serialNumber: hostile,
  }),
)
const hostileStatus = JSON.parse(
  JSON.stringify(sampleStatus).replaceAll('cp1', JSON.stringify(hostile).slice(1, -1)),
) as typeof sampleStatus

const pages: readonly (readonly [name: string, page: string])[] = [
  ['inspect', renderHtml(goldenReport)],
  ['inspect of one', renderHtml(hostileReport)],
  ['rotate-ca status', renderStatusHtml(sampleStatus)],
  ['rotate-ca status of hostile nodes', renderStatusHtml(hostileStatus)],
]

const attribute = (page: Element, name: string, key: string): string[] =>
  elementsOf(page).flatMap((element) => (element.name === name ? [element.attributes[key] ?? ''] : []))

test.each(pages)(
  '%s: is well formed, loads nothing, runs nothing, and has a policy that allows nothing',
  (_, text) => {
    expectSelfContained(text)
    expect(text).not.toMatch(/https?:\/\/(?!192\.0\.2\.)/)
  },
)

test.each(pages)('%s: is accessible to screen readers', (_, text) => {
  const page = readHtml(text)
  const elements = elementsOf(page)
  expect(page.attributes.lang).toBe('en')
  expect(elements.filter(({ name }) => name === 'h1')).toHaveLength(1)
  for (const { name, attributes } of elements)
    if (name === 'svg') expect(attributes['aria-label']).toMatch(/\w/)
  for (const table of elements.filter(({ name }) => name === 'table')) {
    const inside = elementsOf(table)
    expect(inside.some(({ name }) => name === 'caption')).toBe(true)
    expect(
      inside.filter(({ name, attributes }) => name === 'th' && attributes.scope === 'col').length,
    ).toBeGreaterThan(1)
    // With CSS block layout, screen readers recognize a table only by the roles of its parts.
    for (const { name, attributes } of inside)
      if (/^(?:table|tr|td|th)$/.test(name)) expect(attributes.role).toMatch(/\w/)
  }
  expect(attribute(page, 'meta', 'name')).toContain('viewport')
})

test('shows a hostile name as text', () => {
  const page = readHtml(renderHtml(hostileReport))
  expect(textOf(page)).toContain(`<script>alert(1)</script>`)
  expect(textOf(page)).toContain('\\u202eevil\\u001b[2J')
})

test('escapes every value in a template except markup', () => {
  expect(html`<p title="${'"<&\'`'}">${['a<b', html`<b>${'&'}</b>`]}</p>`.text).toBe(
    '<p title="&quot;&lt;&amp;&#39;&#96;">a&lt;b<b>&amp;</b></p>',
  )
})

test('shows every certificate with its state in words, and every problem with what to do next', () => {
  const text = textOf(readHtml(renderHtml(goldenReport)))
  for (const { source, status, fingerprintSha256 } of goldenReport.certificates) {
    expect(text).toContain(source)
    expect(text).toContain(shownStatus[status])
    expect(text).toContain(fingerprintSha256)
  }
  const { verdicts, others } = verdictsOf(goldenReport)
  for (const words of verdicts.flatMap((one) => [one.text, one.next])) expect(text).toContain(words)
  for (const { message, fix = '', next, code } of others)
    for (const words of [message, fix, next, code]) expect(text).toContain(words)
})

test('shows every phase with its pending items', () => {
  const text = textOf(readHtml(renderStatusHtml(sampleStatus)))
  for (const { number, title, pending, state } of sampleStatus.phases) {
    expect(text).toContain(`Phase ${number}: ${title}`)
    if (state === 'incomplete') for (const { what } of pending) expect(text).toContain(what)
  }
})

test('places later times further right on the timeline, and past times left of now', () => {
  const day = 86_400
  const places = [-800 * day, -10 * day, 0, day, 30 * day, 365 * day, 3_650 * day, 100_000 * day].map(
    positionOf,
  )
  expect(places).toEqual([...places].sort((a, b) => a - b))
  expect(places[0]).toBe(0)
  expect(places.at(-1)).toBe(100)
})

test.each(['light', 'dark'] as const)('%s: text has a contrast of at least 4.5 to 1', (scheme) => {
  const [light = '', dark = ''] = [...style.matchAll(/:root\{([^}]+)\}/g)].map(([, rules]) => rules)
  const colours = Object.fromEntries(
    (scheme === 'light' ? light : dark)
      .split(';')
      .map((rule) => rule.slice(2).split(':') as [string, string]),
  )
  for (const name of ['text', 'faint', 'good', 'warning', 'bad', 'quiet', 'accent'])
    for (const behind of ['back', 'card'])
      expect(contrast(colours[name]!, colours[behind]!), `${name} on ${behind}`).toBeGreaterThanOrEqual(4.5)
})

/** WCAG 2, 1.4.3. */
function contrast(one: string, other: string): number {
  const [high = 0, low = 0] = [luminance(one), luminance(other)].sort((a, b) => b - a)
  return (high + 0.05) / (low + 0.05)
}

function luminance(colour: string): number {
  const digits =
    colour.length === 4 ? [...colour.slice(1)].map((digit) => digit + digit).join('') : colour.slice(1)
  const [red = 0, green = 0, blue = 0] = [0, 2, 4].map((at) => {
    const share = Number.parseInt(digits.slice(at, at + 2), 16) / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}
