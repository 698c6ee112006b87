import type { CertificateReport, InspectionReport } from '../../inspection/report.ts'
import { shortName } from '../names.ts'
import { namesakeOf, placeText } from '../places.ts'
import { joinSections } from '../sections.ts'
import { printable } from '../terminal.ts'
import type { View } from '../view.ts'
import { shortened, wrapped } from '../width.ts'
import { leftOutText } from './left-out.ts'
import { problemLines } from './problems.ts'
import { shownStatus } from './status.ts'
import { summaryLines } from './summary.ts'
import { timeLeftOf } from './time-left.ts'
import { verdictLines, verdictsOf } from './verdict.ts'

/** One certificate. Copies in several files are one node. */
interface Node {
  readonly certificate: CertificateReport
  readonly places: readonly string[]
  readonly issued: Node[]
}

// No real chain is deeper. Without a limit, the lines of a forged chain of thousands would be mostly indentation.
const deepestIndent = 24

/**
 * Returns the issuers of all inputs as trees: roots with the certificates that they signed, then certificates whose issuer is not
 * in the inputs.
 */
export function renderTree(report: InspectionReport, view: View): string {
  const nodes = nodesOf(report.certificates)
  const leftOut = leftOutText(report)
  const { roots, orphans } = arranged(nodes)
  const { verdicts, others } = verdictsOf(report)
  return joinSections([
    [...verdictLines(verdicts, view), ...summaryLines(report, view.width)],
    treeLines(roots, 0, report.at, view),
    ...[...orphans].map(([issuer, of]) => [
      view.paint.heading(shortened(`issuer not in the inputs: ${printable(issuer)}`, view.width)),
      ...treeLines(of, 1, report.at, view),
    ]),
    leftOut === undefined ? [] : wrapped(leftOut, view.width),
    problemLines(others, view),
  ])
}

function nodesOf(certificates: readonly CertificateReport[]): Map<string, Node> {
  const nodes = new Map<string, Node>()
  for (const [fingerprint, copies] of Map.groupBy(certificates, (one) => one.fingerprintSha256)) {
    const certificate = namesakeOf(copies)
    if (certificate) nodes.set(fingerprint, { certificate, places: copies.map(placeText), issued: [] })
  }
  return nodes
}

// Puts every node below its issuer. Cross-signed CAs may be each other's issuers. Such a cycle is cut at its first node, which
// becomes a root, so that every certificate appears once.
function arranged(nodes: Map<string, Node>): { roots: Node[]; orphans: Map<string, Node[]> } {
  const roots: Node[] = []
  const orphans: Node[] = []
  const ringStarts = cutsOfRings(nodes)
  for (const [fingerprint, node] of nodes) {
    const { issuerFound } = node.certificate
    const above = issuerFound && nodes.get(issuerFound.fingerprintSha256)
    if (issuerFound?.fingerprintSha256 === fingerprint || ringStarts.has(node)) roots.push(node)
    else if (above) above.issued.push(node)
    else orphans.push(node)
  }
  return { roots, orphans: Map.groupBy(orphans, ({ certificate }) => certificate.issuer.text) }
}

function cutsOfRings(nodes: Map<string, Node>): Set<Node> {
  const cuts = new Set<Node>()
  const settled = new Set<Node>()
  for (const start of nodes.values()) {
    const path = new Set<Node>()
    let node: Node | undefined = start
    while (node && !settled.has(node) && !path.has(node)) {
      path.add(node)
      const above: string | undefined = node.certificate.issuerFound?.fingerprintSha256
      node = above === undefined ? undefined : nodes.get(above)
    }
    if (node && path.has(node)) cuts.add(node)
    for (const one of path) settled.add(one)
  }
  return cuts
}

// Uses an explicit stack, because a chain may be longer than the call stack is deep.
function treeLines(roots: readonly Node[], depth: number, at: string, view: View): string[] {
  const lines: string[] = []
  const open = branches(roots, '', depth)
  for (let branch = open.pop(); branch; branch = open.pop()) {
    lines.push(...nodeLines(branch, at, view))
    for (const one of branches(branch.node.issued, branch.below, branch.depth + 1)) open.push(one)
  }
  return lines
}

interface Branch {
  readonly node: Node
  readonly depth: number
  readonly stem: string
  readonly below: string
}

// In reverse, because the last one pushed is the first one drawn.
function branches(nodes: readonly Node[], stem: string, depth: number): Branch[] {
  const drawn = depth === 0 || depth > deepestIndent
  return nodes
    .map((node, i) => {
      const isLast = i === nodes.length - 1
      return {
        node,
        depth,
        stem: drawn ? stem : stem + (isLast ? '└─ ' : '├─ '),
        below: drawn ? stem : stem + (isLast ? '   ' : '│  '),
      }
    })
    .reverse()
}

function nodeLines({ node, stem, below }: Branch, at: string, view: View): string[] {
  const { certificate, places } = node
  const { status, role, subject } = certificate
  const { paint } = view
  const state = `${shownStatus[status]}, ${timeLeftOf(certificate, at)}`
  const name = printable(role === undefined ? shortName(subject) : `${role}: ${shortName(subject)}`)
  // The name is shortened so that the status remains visible.
  const room = Math.max(view.width - stem.length - state.length - 2, 8)
  const barred = node.issued.length > 0 ? `${below}│  ` : `${below}   `
  return [
    `${paint.faint(stem)}${shortened(name, room)}  ${paint.status[status](state)}`,
    ...places.map((place) => paint.faint(`${barred}${printable(place)}`)),
  ]
}
