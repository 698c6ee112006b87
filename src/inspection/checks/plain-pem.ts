import { commandLine } from '../../errors/command-line.ts'
import type { TreePlace } from '../../pki/kubeadm-tree.ts'
import type { KubeletFile } from '../../pki/kubelet.ts'
import type { Collection } from '../collection.ts'
import type { CertificateEntry, Group, KeyEntry, Origin, UnseenForm } from '../entries.ts'
import { problemAt } from '../problems.ts'
import type { Problem } from '../report.ts'
import type { SnapshotCheck } from './check.ts'
import { pastable } from './files.ts'

// Input that kcert reads and Kubernetes does not: Kubernetes components find PEM blocks with Go's pem.Decode and do not decrypt
// keys.

/** Files and fields that Kubernetes reads as PEM must contain PEM that Go reads. */
export const checkForms: SnapshotCheck = ({ collection }) => [
  ...ofTrees(collection),
  ...ofOtherPlaces(collection),
]

interface Wording {
  readonly what: string
  readonly fix: string
  readonly next?: (file: string, isKey: boolean) => string
}

/** A text for each form, and how to convert it to PEM. */
export const unseenForms: Readonly<Record<UnseenForm, Wording>> = {
  'byte order mark': {
    what: 'begins with a byte order mark',
    fix: 'save it without one',
    next: (file) => commandLine`sed -i '1s/^\\xef\\xbb\\xbf//' ${file}`,
  },
  'UTF-16': {
    what: 'is UTF-16 text',
    fix: 'save it as UTF-8',
    next: (file) => commandLine`iconv -f UTF-16 -t UTF-8 ${file} > ${`${file}.new`}`,
  },
  'CR line ends': {
    what: 'has lines that end with CR only',
    fix: 'convert the line ends to LF',
    next: (file) => commandLine`tr '\\r' '\\n' < ${file} > ${`${file}.new`}`,
  },
  base64: {
    what: 'is base64-encoded once more',
    fix: 'decode it',
    next: (file) => commandLine`base64 -d ${file} > ${`${file}.new`}`,
  },
  DER: {
    what: 'is DER',
    fix: 'convert it to PEM',
    next: (file, isKey) =>
      isKey
        ? commandLine`(umask 077; openssl pkey -inform DER -in ${file} -out ${`${file}.new`})`
        : commandLine`openssl x509 -inform DER -in ${file} -out ${`${file}.new`}`,
  },
  'PKCS#7': {
    what: 'is PKCS#7',
    fix: 'convert its certificates to PEM (with -inform DER if it is DER)',
    next: (file) => commandLine`openssl pkcs7 -print_certs -in ${file} -out ${`${file}.new`}`,
  },
  'PKCS#12': {
    what: 'is a PKCS#12 keystore',
    fix: 'convert its content to PEM',
    next: (file) => commandLine`(umask 077; openssl pkcs12 -nodes -in ${file} -out ${`${file}.new`})`,
  },
  label: {
    what: 'has a label other than CERTIFICATE',
    fix: 'write it as PEM again',
    next: (file) => commandLine`openssl x509 -in ${file} -out ${`${file}.new`}`,
  },
  headers: {
    what: 'has PEM headers',
    fix: 'remove the lines between BEGIN and the first empty line',
  },
  encrypted: {
    what: 'is encrypted',
    fix: 'store it without encryption, readable only by its owner',
    next: (file) => commandLine`(umask 077; openssl pkey -in ${file} -out ${`${file}.new`})`,
  },
}

type Entry = CertificateEntry | KeyEntry

function problem(entry: Entry, form: UnseenForm, severity: Problem['severity']): Problem {
  const { what, fix, next } = unseenForms[form]
  const isKey = 'encrypted' in entry
  const thing = isKey ? 'private key' : 'certificate'
  const { file } = entry.group.origin
  const name = entry.group.owner.kind !== 'value' && file ? pastable(file.path) : undefined
  return problemAt(entry, 'NOT_PLAIN_PEM', {
    message:
      form === 'encrypted'
        ? `the private key ${what}: no Kubernetes component can read it`
        : `${what}: Kubernetes reads only PEM, and finds no ${thing}`,
    fix,
    next: name && next?.(name, isKey),
    severity,
  })
}

/** In kubeadm's and the kubelet's folders each file must contain what Kubernetes reads from it. */
function ofTrees(collection: Collection): Problem[] {
  const places = new Map(
    collection.origins.flatMap((origin) =>
      origin.treePlace === undefined || origin.isReferenced ? [] : [[origin, origin.treePlace] as const],
    ),
  )
  if (places.size === 0) return []
  const files = collection.groups.filter(({ owner, origin }) => owner.kind === 'file' && places.has(origin))
  const groups = new Map(files.map((group) => [group.origin, group]))
  // A malformed certificate already has a critical problem with more details.
  const evaluated = new Set(
    collection.problems.filter(({ severity }) => severity === 'critical').map(({ source }) => source),
  )
  return [...places].flatMap(([origin, place]) =>
    evaluated.has(origin.source) ? [] : ofTreeFile(origin, groups.get(origin), wantedAt(place), collection),
  )
}

type Wanted = 'certificate' | 'private key' | 'public key'

function wantedAt(place: TreePlace): readonly Wanted[] {
  if ('row' in place) {
    const { part } = place
    if (part === 'kubeconfig') return []
    return [part === 'key' ? 'private key' : part === 'public-key' ? 'public key' : 'certificate']
  }
  return wantedParts[place.file.part] ?? []
}

const wantedParts: Readonly<Partial<Record<KubeletFile['part'], readonly Wanted[]>>> = {
  current: ['certificate', 'private key'],
  'self-signed': ['certificate'],
  'self-signed-key': ['private key'],
}

function ofTreeFile(
  { source }: Origin,
  group: Group | undefined,
  wanted: readonly Wanted[],
  { unseen }: Collection,
): Problem[] {
  const certificates = group?.certificates ?? []
  const keys = group?.keys ?? []
  return wanted.flatMap((what) => {
    const fitting: Readonly<Record<Wanted, readonly Entry[]>> = {
      certificate: certificates,
      'private key': keys.filter(({ kind }) => kind === 'private'),
      // kube-apiserver also accepts the public key from a private key or a certificate.
      'public key': [...keys, ...certificates],
    }
    if (fitting[what].some((entry) => !unseen.has(entry))) return []
    const [first] = fitting[what]
    const form = first && unseen.get(first)
    if (first !== undefined && form !== undefined) return problem(first, form, 'critical')
    return problemAt({ source, entry: '' }, 'NOT_PLAIN_PEM', {
      message: `it contains no ${what} that Kubernetes can read`,
      fix: 'restore the file from a backup or another node, or create it again as if it were missing',
      severity: 'critical',
    })
  })
}

const isText: ReadonlySet<UnseenForm> = new Set(['byte order mark', 'UTF-16', 'CR line ends', 'base64'])

/** In other places: each kubeconfig field, values that are read as PEM, and text that appears to be PEM. */
function ofOtherPlaces({ unseen }: Collection): Problem[] {
  const reported = new Set<Group>()
  const problems: Problem[] = []
  for (const [entry, form] of unseen) {
    const severity = severityElsewhere(entry, form, unseen)
    if (severity === undefined || reported.has(entry.group)) continue
    reported.add(entry.group)
    problems.push(problem(entry, form, severity))
  }
  return problems
}

// PEM_BLOCK_BAD already reports it.
function isOddBlock(form: UnseenForm): boolean {
  return form === 'label' || form === 'headers'
}

function severityElsewhere(
  { group }: Entry,
  form: UnseenForm,
  unseen: Collection['unseen'],
): 'critical' | 'warning' | undefined {
  const { owner, origin } = group
  switch (owner.kind) {
    case 'user':
    case 'cluster':
      // Such a block is already reported as a problem. If no other block is left, there is no certificate at all.
      return isOddBlock(form) && group.certificates.some((one) => !unseen.has(one)) ? undefined : 'critical'
    case 'value':
      return !isOddBlock(form) && isReadAsPem(owner.object.kind, owner.key) ? 'warning' : undefined
    case 'ca-bundle':
    case 'issued':
      return isOddBlock(form) ? undefined : 'warning'
    default:
      // Standard input is not a file that another program reads.
      return origin.file !== undefined && origin.treePlace === undefined && isText.has(form)
        ? 'warning'
        : undefined
  }
}

/** Other names in a Secret are often keystores for programs that use this format. */
function isReadAsPem(kind: 'Secret' | 'ConfigMap', key: string): boolean {
  return kind === 'ConfigMap' || key === 'tls.crt' || key === 'tls.key' || key === 'ca.crt'
}
