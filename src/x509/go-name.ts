import { type CommandLine, commandLine } from '../errors/command-line.ts'
import type { Name } from './name.ts'
import type { AttributeDescription } from './name-encoding.ts'
import { moreThanUserAndGroups } from './plain-names.ts'

// Go's pkix.Name: the parts of a subject that kube-controller-manager, kubeadm and cfssl keep, and the order in which they write
// them.

/** In the order of ToRDNSequence. Several values of one type share one RDN. */
const multiValued = ['C', 'ST', 'L', 'STREET', 'postalCode', 'O', 'OU'] as const
const singleValued = ['CN', 'serialNumber'] as const

/** All attribute types that Go keeps. */
export const goAttributeTypes: readonly string[] = [...multiValued, ...singleValued]

export interface GoName {
  readonly rdns: AttributeDescription[][]
  /**
   * Attributes that Go does not keep: emailAddress, DC, UID and all types without a short name, and all common names and serial
   * numbers but the last.
   */
  readonly dropped: readonly AttributeDescription[]
}

/**
 * Returns a subject as Go would write it again: sorted by type, with the values of one type together, and only the last common
 * name and serial number. An empty common name or serial number is omitted.
 */
export function goName(attributes: readonly AttributeDescription[]): GoName {
  const valuesOf = (type: string): string[] =>
    attributes.filter((attribute) => attribute.type === type).map(({ value }) => value)
  const several = multiValued.map((type) => valuesOf(type).map((value) => ({ type, value })))
  const single = singleValued.map((type) =>
    valuesOf(type)
      .slice(-1)
      .filter((value) => value !== '')
      .map((value) => ({ type, value })),
  )
  const last = singleValued.map((type) => attributes.findLast((attribute) => attribute.type === type))
  const isKept = (attribute: AttributeDescription): boolean =>
    multiValued.some((type) => type === attribute.type) || last.includes(attribute)
  return {
    rdns: [...several, ...single].filter((rdn) => rdn.length > 0),
    dropped: attributes.filter((attribute) => !isKept(attribute)),
  }
}

/** Returns the types of a subject's attributes that Go keeps, except CN, O and the allowed ones. */
export function copiedBesides(subject: Name, allowed: readonly string[]): string[] {
  return moreThanUserAndGroups(subject, allowed).filter((type) => goAttributeTypes.includes(type))
}

/** Returns how to sign a request whose subject has these attributes. */
export function allowAttributes(types: readonly string[]): CommandLine {
  return commandLine`request a certificate with CN and O alone, or run the same command again with --allow-subject-attributes ${[...new Set(types)].join(',')}`
}
