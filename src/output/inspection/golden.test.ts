import { describe, expect, test } from 'vitest'
import { certificateReport, goldenReport, reportOf } from '../../../test/reports/golden-report.ts'
import { renderJson } from '../json.ts'
import { createPaint, noPaint } from '../paint.ts'
import { wholeWidth } from '../view.ts'
import { displayWidth } from '../width.ts'
import { renderYaml } from '../yaml.ts'
import { renderNagios } from './nagios.ts'
import { renderPem } from './pem.ts'
import { renderPrometheus } from './prometheus.ts'
import { renderText } from './text.ts'
import { renderTree } from './tree.ts'
import { renderWide } from './wide.ts'

// The files in test/golden/ contain the output as users see it. Review their diff like a screen. `vitest run src/output -u`
// updates them.

const golden = (name: string) => `../../../test/golden/${name}`
const [server, , , , , signingCa] = goldenReport.certificates

describe.each([60, 80, 120, 200])('at %i columns', (width) => {
  const view = { width, paint: noPaint }

  test('renders text', async () => {
    await expect(renderText(goldenReport, view)).toMatchFileSnapshot(golden(`inspect-text-${width}.txt`))
  })

  test('renders a card', async () => {
    await expect(renderText(reportOf(server!), view)).toMatchFileSnapshot(golden(`inspect-card-${width}.txt`))
  })

  test('renders a tree', async () => {
    await expect(renderTree(goldenReport, view)).toMatchFileSnapshot(golden(`inspect-tree-${width}.txt`))
  })

  test('keeps lines within the width, except names, paths and commands', () => {
    const texts = [
      renderText(goldenReport, view),
      renderText(reportOf(signingCa!), view),
      renderTree(goldenReport, view),
    ]
    for (const line of texts.join('\n').split('\n')) {
      const isWhole =
        /^ *next: |\/|^\s*\S*(?: \S+){0,2}\s{2,}\S+$|kubernetes\.io|system:node|REQUEST|sha256:|監視/.test(
          line,
        )
      if (!isWhole) expect(displayWidth(line), line).toBeLessThanOrEqual(width)
    }
  })

  test('shows status and time left in full in every row', () => {
    const text = renderText(goldenReport, view)
    for (const state of [
      'expired        3d 1h ago ',
      'critical       3d 3h ',
      'not yet valid  starts in 40d ',
    ]) {
      expect(text).toContain(`\n${state}`)
    }
  })
})

test('shortens nothing without a width limit, as for a pipe', async () => {
  const text = renderText(goldenReport, { width: Infinity, paint: noPaint })
  expect(text).not.toContain('…')
  await expect(text).toMatchFileSnapshot(golden('inspect-text-pipe.txt'))
})

test('renders the same text in colour, with colour only where a word has the same meaning', async () => {
  const text = renderText(goldenReport, { width: 120, paint: await createPaint(1) })
  await expect(text).toMatchFileSnapshot(golden('inspect-text-120-colour.txt'))
  expect(text.replace(/\x1b\[\d+m/g, '')).toBe(renderText(goldenReport, { width: 120, paint: noPaint }))
})

test('renders a single CA', async () => {
  const text = renderText(reportOf(signingCa!), { width: 80, paint: noPaint })
  await expect(text).toMatchFileSnapshot(golden('inspect-card-ca.txt'))
})

test('renders a single request', async () => {
  const report = { ...reportOf(server!), certificates: [], requests: goldenReport.requests }
  const text = renderText(
    { ...report, summary: { ...report.summary, certificates: 0, requests: 1, ok: 0 } },
    { width: 80, paint: noPaint },
  )
  await expect(text).toMatchFileSnapshot(golden('inspect-card-request.txt'))
})

test('renders wide output', async () => {
  await expect(renderWide(goldenReport, wholeWidth)).toMatchFileSnapshot(golden('inspect-wide.txt'))
})

test('renders JSON', async () => {
  await expect(renderJson(goldenReport)).toMatchFileSnapshot(golden('inspect.json'))
})

test('renders YAML', async () => {
  await expect(renderYaml(goldenReport)).toMatchFileSnapshot(golden('inspect.yaml'))
})

test('renders Prometheus metrics', async () => {
  await expect(renderPrometheus(goldenReport)).toMatchFileSnapshot(golden('inspect.prom'))
})

test('renders Nagios output', async () => {
  await expect(renderNagios(goldenReport).line).toMatchFileSnapshot(golden('inspect-nagios.txt'))
})

test('renders PEM', async () => {
  const pem = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
  const armoured = certificateReport({
    source: 'x.pem',
    notAfter: '2027-01-01T00:00:00Z',
    status: 'ok',
    subject: { text: 'CN=-----BEGIN CERTIFICATE-----\nAAAA', organization: [] },
  })
  const certificates = [server!, armoured].map((report) => ({ report, pem }))
  await expect(renderPem(certificates, goldenReport)).toMatchFileSnapshot(golden('inspect.pem.txt'))
})
