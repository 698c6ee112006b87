/** Sources that make decisions, and the tests that run them in their own process. */
export interface Target {
  readonly sources: readonly string[]
  readonly tests: readonly string[]
}

/** Globs. Tests that start the built program do not run the mutants and are left out. */
export const targets: readonly Target[] = [
  {
    sources: ['src/rotation/{refusals,conditions,old-keys}.ts'],
    tests: ['test/rotation/{refusals,conditions,preflight,old-keys,old-key-use}.test.ts'],
  },
  {
    sources: ['src/rotation/model/check.ts'],
    tests: ['src/rotation/model/*.test.ts', 'test/rotation/{model,stored,forecast}.test.ts'],
  },
  {
    sources: ['src/rotation/runner.ts'],
    tests: ['test/rotation/runner.test.ts'],
  },
  { sources: ['src/rotation/etcd/quorum.ts'], tests: ['src/rotation/etcd/quorum.test.ts'] },
  // Tested on snapshots: a whole rotation for each mutant takes too long.
  {
    sources: ['src/rotation/{phases/**/*,distributing}.ts'],
    tests: ['test/rotation/{phases,gates}.test.ts'],
  },
  ...[
    'executor',
    'file-writing',
    'copies',
    'probing',
    'listening',
    'watching-handshakes',
    'watching-etcd-clients',
    'etcd-metrics',
    'tcp-connections',
    'cluster-guard',
  ].map((name) => ({
    sources: [`src/{rotation-io,site}/${name}.ts`],
    tests: [`{src,test}/{rotation-io,site}/${name}.test.ts`],
  })),
  {
    sources: [
      'src/csr/{admission,manifest-reading,object-metadata,request-shape,signers}.ts',
      // decided.ts and decision-report.ts write the report of the decisions.
      'src/csr/approval/!(*.test|decided|decision-report).ts',
      'src/x509/plain-names.ts',
    ],
    tests: ['src/csr/**/*.test.ts', 'src/x509/plain-names.test.ts', 'test/truth/csr-*.test.ts'],
  },
  { sources: ['src/ca/signing.ts'], tests: ['src/ca/*.test.ts', 'test/truth/ca-signing.test.ts'] },
  // report.ts is the schema of the JSON output and decides nothing.
  {
    sources: ['src/verification/!(*.test|report).ts'],
    tests: ['src/verification/*.test.ts'],
  },
  {
    sources: ['src/system/{lock,atomic-file,trusted-file,trusted-path}.ts'],
    tests: ['src/system/*.test.ts'],
  },
  { sources: ['src/node/{node-script,tunnel}.ts'], tests: ['test/node/*.test.ts', 'src/node/*.test.ts'] },
  {
    sources: ['src/cli/{operands,consent,prompts}.ts', 'src/app/csr/approve.ts'],
    tests: ['src/{cli,app/csr}/*.test.ts'],
  },
]
