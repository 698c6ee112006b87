import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { renderHtml } from '../../src/output/inspection/html.ts'
import { renderStatusHtml } from '../../src/output/rotation/html.ts'
import { Browser, chromium } from '../reports/browser.ts'
import { goldenReport } from '../reports/golden-report.ts'
import { readHtml, textOf } from '../reports/html-reading.ts'
import { sampleStatus } from '../reports/rotation-status.ts'
import { kcert } from './program.ts'
import { temporaryFolder } from './temporary-folder.ts'

// The pages in a browser. KCERT_SCREENSHOTS=1 rewrites those in docs/images.

const at = temporaryFolder('html')

test('inspect writes a page atomically, and exits with the same code as for other formats', () => {
  const file = join(at, 'page.html')
  const args = ['inspect', 'examples/kubelet.kubeconfig', '--at', '2026-11-21T00:00:00Z', '-o', 'html']
  const { exit, stdout } = kcert([...args, '--output-file', file])
  expect(stdout).toBe('')
  expect(exit).toBe(kcert(['inspect', 'examples/kubelet.kubeconfig', '--at', '2026-11-21T00:00:00Z']).exit)
  expect(textOf(readHtml(readFileSync(file, 'utf8')))).toContain('examples/kubelet.kubeconfig')
})

const pages = {
  inspect: renderHtml(goldenReport),
  'rotate-ca-status': renderStatusHtml(sampleStatus),
}

describe.skipIf(chromium === undefined)(
  'in a browser (skipped without Chromium: see CONTRIBUTING.md)',
  () => {
    let browser: Browser

    beforeAll(async () => {
      for (const [name, text] of Object.entries(pages)) writeFileSync(join(at, `${name}.html`), text)
      browser = new Browser(chromium!)
      await browser.start()
    })

    afterAll(() => browser?.close())

    const show = (name: string, width: number, scheme: 'light' | 'dark'): Promise<void> =>
      browser.show(join(at, `${name}.html`), width, scheme)

    describe.each(Object.keys(pages))('%s', (name) => {
      test.each([320, 390, 1280])('at %i pixels, no content overflows the page', async (width) => {
        await show(name, width, 'light')
        expect(await browser.shownWidth()).toBeLessThanOrEqual(width)
        const small = await browser.evaluate(
          "[...document.querySelectorAll('main *')].filter((one) => one.textContent && Number.parseFloat(getComputedStyle(one).fontSize) < 11).length",
        )
        expect(small).toBe(0)
      })

      test.each([320, 900])('at %i pixels, a time is on one line', async (width) => {
        await show(name, width, 'light')
        const broken =
          "[...document.querySelectorAll('td time')].filter((one) => one.getClientRects().length > 1).length"
        expect(await browser.evaluate(broken)).toBe(0)
      })

      test('loads nothing, and does not violate its own policy', async () => {
        await show(name, 1280, 'light')
        const requests = browser.events.filter(({ method }) => method === 'Network.requestWillBeSent')
        expect(requests).toHaveLength(1)
        expect(browser.events.filter(({ method }) => method === 'Log.entryAdded')).toEqual([])
      })

      test('is dark where the user prefers dark, and its bars have colours in both schemes', async () => {
        const observations = async (scheme: 'light' | 'dark') => {
          await show(name, 1280, scheme)
          return (await browser.evaluate(
            "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.querySelector('rect')).fill]",
          )) as [string, string]
        }
        const [light, dark] = [await observations('light'), await observations('dark')]
        expect(light[0]).toBe('rgb(255, 255, 255)')
        expect(dark[0]).toBe('rgb(13, 17, 23)')
        expect(dark[1]).not.toBe(light[1])
        expect(light[1]).not.toBe('rgb(0, 0, 0)')
      })

      test('keeps its tables accessible to screen readers on a phone', async () => {
        await show(name, 390, 'light')
        const { nodes } = (await browser.ask('Accessibility.getFullAXTree')) as {
          nodes: { role?: { value: string }; ignored: boolean }[]
        }
        const roles = nodes.filter(({ ignored }) => !ignored).map(({ role }) => role?.value)
        for (const role of ['table', 'row', 'cell', 'columnheader', 'rowheader', 'heading'])
          expect(roles).toContain(role)
      })
    })

    test.runIf(process.env.KCERT_SCREENSHOTS)('screenshots for the docs', async () => {
      mkdirSync('docs/images', { recursive: true })
      for (const [name, width, scheme] of [
        ['inspect', 900, 'light'],
        ['rotate-ca-status', 390, 'dark'],
      ] as const) {
        await show(name, width, scheme)
        const { data } = await browser.ask('Page.captureScreenshot', { format: 'png' })
        writeFileSync(`docs/images/${name}.png`, Buffer.from(String(data), 'base64'))
      }
    })
  },
)
