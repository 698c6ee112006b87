// Words to avoid in kcert's texts, and their replacements. The replacements are the terms of kubernetes.io, RFC 5280, Go's
// crypto/x509 and kubeadm, because readers search for them. scripts/prose.ts applies the list to the hand-written pages. The list
// is independent of Markdown, so it also applies to messages and help.

export interface AvoidedWord {
  /** The pattern to find, in any case, as whole words. A regular expression without flags. */
  readonly pattern: string
  readonly instead: string
  /** A text that the pattern matches, for the test and as documentation. */
  readonly example: string
}

export const avoidedWords: readonly AvoidedWord[] = [
  // Terms of the field.
  { pattern: 'octets?(?! string)', instead: 'byte', example: 'changed octets' },
  {
    pattern: '(?<!subject )alternative names?',
    instead: 'SANs (subject alternative names)',
    example: 'its alternative names',
  },
  {
    pattern: 'CA pins?',
    instead: 'discovery token CA cert hash, then "public key pin"',
    example: 'print the CA pin',
  },
  { pattern: '(?:has|have|had) ended', instead: 'expired', example: 'a certificate that has ended' },
  { pattern: 'presenters?', instead: 'client or server', example: 'each presenter and its chain' },
  {
    pattern: '(?<!feature )(?<!feature-)gates?',
    instead: 'precondition (before), completion check (after)',
    example: 'the gate of phase 3',
  },
  {
    pattern: 'bridge(?! (?:CA )?certificates?)s?',
    instead: 'cross-signed CA certificate; "bridge certificate" where it is defined',
    example: 'served by the bridge',
  },
  { pattern: 'newcomers?', instead: 'joining node', example: 'what newcomers trust' },
  { pattern: 'ledgers?', instead: 'issuance log', example: 'a ledger of serial numbers' },
  { pattern: 'phase \\w+ (?:does not )?holds?', instead: 'complete, incomplete', example: 'phase 3 holds' },
  {
    pattern: '(?:chain|signature)s? (?:holds?|stands?)',
    instead: 'is valid, verifies',
    example: 'the chain holds',
  },
  { pattern: 'left alone|leaves? alone', instead: 'skipped', example: 'the rest is left alone' },
  { pattern: 'authority: (?:yes|no)', instead: 'CA: TRUE, CA: FALSE', example: 'authority: yes' },
  { pattern: 'not among the inputs', instead: 'not in the inputs', example: 'issuer: not among the inputs' },
  { pattern: 'removed in', instead: 'deleted in', example: 'REMOVED IN' },
  { pattern: 'as words for', instead: 'as arguments of', example: 'as words for kubeadm join' },
  { pattern: 'done before', instead: 'already done', example: 'what was done before' },
  { pattern: 'from a timer', instead: 'from cron or a systemd timer', example: 'run it from a timer' },
  { pattern: 'length of life', instead: 'validity', example: 'with the length of life of the old one' },
  // Words that make a sentence hard to read.
  {
    pattern: 'who(?:m|ever|mever)',
    instead: 'who, or name the person or program',
    example: 'whoever presents it',
  },
  { pattern: 'nobody|anybody|somebody', instead: 'name the person or program', example: 'nobody trusts it' },
  { pattern: 'again and again', instead: 'repeatedly', example: 'it restarts again and again' },
  {
    pattern: 'all the same',
    instead: 'nevertheless, or leave it out',
    example: 'it uses the key all the same',
  },
  { pattern: 'anew', instead: 'again', example: 'it starts anew' },
  { pattern: 'mend(?:s|ed|ing)?', instead: 'repair', example: 'its files mended' },
  { pattern: 'gladly', instead: 'preferably', example: 'taken gladly' },
  { pattern: 'judg(?:e[sd]?|ing|e?ments?)', instead: 'evaluate, decide', example: 'what was judged' },
  { pattern: 'wish(?:es|ed)?', instead: 'want, option', example: 'as you wish' },
  { pattern: 'in hand', instead: 'current', example: 'the act in hand' },
  { pattern: 'stands', instead: 'is', example: 'where the rotation stands' },
  {
    pattern: '(?:is|are) (?:asked|told|said)|(?:is|if) not said',
    instead: 'name who asks, says or requires it; "default" for a flag',
    example: 'if not said: 30d',
  },
  { pattern: 'by an? [\\w-]+ of your own', instead: 'with your own …', example: 'by a policy of your own' },
  { pattern: 'there is no flag', instead: 'unknown flag', example: 'there is no flag --x' },
  { pattern: 'is known by', instead: 'is identified by', example: 'it is known by the token' },
  { pattern: '(?:goes|go|went|going) by', instead: 'uses', example: 'it goes by files' },
  { pattern: '(?:held|holds?) (?:\\w+ )?against', instead: 'compare with', example: 'held against a CA' },
  { pattern: 'is to be', instead: 'must be, will be', example: 'what is to be done' },
  { pattern: 'is over', instead: 'expired, finished', example: 'its lifetime is over' },
  {
    pattern: 'upon (?:your|it|them|our)sel(?:f|ves)|upon you|answer(?:s|ed)? for',
    instead: 'accept the risk',
    example: 'answer for it yourself',
  },
  { pattern: '(?:a|one|first) look', instead: 'check, inspect', example: 'one look is enough' },
  {
    pattern: 'what is (?:served|shown|asked|there)',
    instead: 'a noun, as "the served certificate"',
    example: 'what is served',
  },
  { pattern: 'worth knowing', instead: 'notes', example: 'Worth knowing' },
  { pattern: 'shakes? hands', instead: 'connects, probes', example: 'it shakes hands with servers' },
  { pattern: 'believes?|believed', instead: 'trust', example: 'clients believe it' },
]

export interface FoundWord {
  readonly text: string
  readonly instead: string
  /** The index in the text at which it begins. */
  readonly index: number
}

const list = avoidedWords.map(({ pattern, instead }) => ({
  pattern: new RegExp(`(?<![\\w-])(?:${pattern})(?![\\w-])`, 'gi'),
  instead,
}))

/** Returns every avoided word in a text, in order. */
export function avoidedIn(text: string): FoundWord[] {
  return list
    .flatMap(({ pattern, instead }) =>
      [...text.matchAll(pattern)].map(({ 0: found, index }) => ({ text: found, instead, index })),
    )
    .sort((one, other) => one.index - other.index)
}
