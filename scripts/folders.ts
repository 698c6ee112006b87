// The map of the source: the purpose of each folder, and the folders that it may import. It generates the tables of
// ARCHITECTURE.md. scripts/import-graph.ts refuses imports that it does not allow, and permissions that no file uses.

export interface Layer {
  readonly purpose: string
  /** The folders that it may import besides itself. `everything below`: all folders after it in this table. */
  readonly may: readonly string[] | 'everything below'
  /** The folders of which it may import only types. */
  readonly types?: readonly string[]
}

/** src/NAME → its rule, from the composition root down to the folders on which all others depend. */
export const layers: Readonly<Record<string, Layer>> = {
  commands: { purpose: 'oclif classes; the path is the command line', may: 'everything below' },
  app: {
    purpose: 'what each command does, by topic: `csr/approve.ts` is `kcert csr approve`',
    may: 'everything below',
  },
  cli: {
    purpose: 'what commands share: base command, context of the process, prompts, help',
    may: 'everything below',
  },
  output: {
    purpose: 'reports → text, table, tree, HTML, JSON, YAML, Prometheus, Nagios',
    may: ['errors'],
    types: [
      ...['audit', 'bootstrap', 'ca', 'csr', 'diagnosis', 'inspection', 'kubeconfig', 'kubelet', 'probe'],
      ...['rotation', 'verification'],
    ],
  },
  completion: { purpose: 'completion for bash, zsh, fish and kubectl, from the manifest', may: ['errors'] },
  'renewal-io': {
    purpose: '`renew`, `kubelet doctor` and `kubelet forecast` on real nodes',
    may: ['rotation-io', 'site', 'tls', 'kubelet', 'ca', 'pki', 'kubeconfig', 'x509', 'errors'],
    types: ['system', 'rotation'],
  },
  'rotation-io': {
    purpose:
      'the ports of `src/rotation` on a real cluster: observer, executor, proofs, journal, guard, copies',
    may: [
      ...['site', 'cluster', 'node', 'system', 'rotation', 'ca', 'csr', 'bootstrap', 'inspection'],
      ...['pki', 'kubeconfig', 'x509', 'errors'],
    ],
  },
  site: {
    purpose:
      'the nodes and API servers of a cluster: files, objects, pods, ports, versions, Jobs that reach nodes, and the targets of `probe`',
    may: [
      ...['cluster', 'node', 'tls', 'system', 'rotation', 'verification', 'probe'],
      ...['pki', 'kubeconfig', 'x509', 'errors'],
    ],
  },
  cluster: {
    purpose: 'the API server: connection, credentials, retries, objects, watches, leader election',
    // kcert has its own kubeconfig parser, because client-node's does not limit aliases and accepts input that client-go refuses.
    // From csr it uses the types of the port: the identity of a Node, and which spellings of an address are equal.
    may: ['csr', 'kubeconfig', 'system', 'errors'],
  },
  // The port is declared in pki, the lowest folder common to rotation, kubelet and the commands.
  node: {
    purpose:
      'files and processes of a node: on this machine, by SSH, or through any command that runs a shell there',
    may: ['system', 'errors'],
    types: ['pki'],
  },
  tls: { purpose: 'live TLS handshakes', may: ['x509', 'errors'], types: ['inspection', 'probe'] },
  system: {
    purpose: 'clock, random numbers, reading files and folders, atomic writing, locks',
    may: ['errors'],
    types: ['inspection'],
  },
  rotation: {
    purpose:
      "replacing a cluster's CAs and its service account key: phases as values, the models that prove a plan, runner, journal; declares ports",
    may: ['pki', 'kubeconfig', 'x509', 'errors'],
  },
  kubelet: {
    purpose:
      'when kubelets renew their certificates, and why not; renewing certificates of other programs in the same way',
    may: ['pki', 'kubeconfig', 'x509', 'errors'],
  },
  probe: {
    purpose: 'the problems and the report of probed servers',
    may: ['verification', 'inspection', 'pki', 'x509', 'errors'],
  },
  audit: {
    purpose: 'who uses which credential: events of audit logs, what is known about their IDs, audit policies',
    may: ['pki', 'kubeconfig', 'x509', 'errors'],
    types: ['ca'],
  },
  bootstrap: {
    purpose: 'bootstrap tokens, cluster-info and its signature, discovery token CA cert hashes',
    may: ['pki', 'kubeconfig', 'x509', 'errors'],
  },
  ca: {
    purpose: 'the local CA: signing as kube-controller-manager does, profiles, issuance log, bundles',
    may: ['pki', 'kubeconfig', 'x509', 'errors'],
  },
  csr: {
    purpose:
      'what the API server, approvers and signers require of a request; requests on a cluster through a port',
    may: ['pki', 'kubeconfig', 'x509', 'errors'],
  },
  // From the text of an error to its causes: rules on text, without lookups.
  diagnosis: { purpose: 'error messages → causes and commands', may: ['inspection', 'errors'] },
  verification: {
    purpose: '`kcert verify`: runs the path validation of `src/x509`, and describes the result',
    may: ['inspection', 'pki', 'kubeconfig', 'x509', 'errors'],
  },
  inspection: {
    purpose: 'what is in the inputs, how it is linked, and what is wrong with it',
    may: ['pki', 'kubeconfig', 'x509', 'errors'],
  },
  pki: {
    purpose:
      "kubeadm's certificate table, the kubelet's files, static pods, systemd units; the port to a node",
    may: ['kubeconfig', 'x509', 'errors'],
  },
  kubeconfig: {
    purpose: 'kubeconfigs as client-go reads them; edits in place that keep the rest',
    may: ['x509', 'errors'],
  },
  x509: {
    purpose:
      'DER, PEM, names, extensions, certificates, requests, keys, PKCS#7, PKCS#12, issuing, path validation, claims of service account tokens',
    may: ['errors'],
  },
  errors: { purpose: 'error codes → exit code and summary; `KcertError`: what, why, next', may: [] },
}

/** test/NAME → what its tests need beyond a test next to a source file. Folders without tests are not listed. */
export const testFolders: Readonly<Record<string, string>> = {
  scripts: 'the built program: whole commands',
  guides: 'the built program: the commands of docs/guides',
  'supply-chain': 'the built package',
  release: 'the files of a release, each used as a new user would',
  bench: 'records of `npm run bench`',
  lab: 'a real cluster',
  truth: 'recorded cases of other projects',
  differential: 'Go and OpenSSL, with the same inputs',
  fuzz: 'generated inputs for the readers',
  reliability: 'the built program, stopped at each write',
  mutation: 'the sources that mutants change',
  contract: 'one suite for a fake and for the real thing',
  rotation: 'the simulated cluster: phases, runner and model together',
  'rotation-io': 'nodes in memory and the fake API server: the ports together',
  node: 'an SSH server and a shell: one contract for each transport',
  bootstrap: 'the fake API server',
}
