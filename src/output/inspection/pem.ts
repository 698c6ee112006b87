import type { CertificateReport, InspectionReport } from '../../inspection/report.ts'
import { placeText } from '../places.ts'
import { printable } from '../terminal.ts'
import { secondOf } from '../time.ts'
import { leftOutText } from './left-out.ts'

/** Returns the certificates as PEM blocks, each after lines with its description and source. */
export function renderPem(
  certificates: readonly { report: CertificateReport; pem: string }[],
  whole: InspectionReport,
): string {
  const leftOut = leftOutText(whole)
  const blocks = certificates.map(({ report, pem }) => `${remarks(report)}${pem}`)
  return [...blocks, ...(leftOut === undefined ? [] : [`# ${leftOut}\n`])].join('')
}

function remarks(report: CertificateReport): string {
  return [
    `# ${placeText(report)}`,
    `# subject: ${report.subject.text}`,
    `# expires: ${secondOf(report.notAfter)}`,
  ]
    .map((line) => `${withoutArmour(printable(line))}\n`)
    .join('')
}

// Some parsers search for the dashes anywhere in a line, so a subject that contains them must not begin a block.
function withoutArmour(line: string): string {
  return line.replace(/-{4,}/g, (dashes) => '\\u002d'.repeat(dashes.length))
}
