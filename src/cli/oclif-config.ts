import type { Config } from '@oclif/core'

/**
 * Returns the little of oclif's Config that a command reads while it runs. oclif's own loading reads package.json and
 * the manifest and looks for plugins, which costs more time than most commands; kcert has no plugins. Help, version
 * and unknown commands take oclif's way. test/scripts/starts.test.ts holds both ways against each other.
 */
export function commandConfig(version: string): Config {
  const config = {
    bin: 'kcert',
    name: 'kcert',
    version,
    userAgent: `kcert/${version}`,
    root: '',
    pjson: { name: 'kcert', version, oclif: {} },
    plugins: new Map(),
    // oclif looks for the command among the words again, to warn of old names, in time that grows with their square. The words
    // are no command here: the command is found, and this separator makes the second search none.
    topicSeparator: ':',
    commandIDs: [],
    flexibleTaxonomy: false,
    theme: undefined,
    runHook: async () => ({ successes: [], failures: [] }),
    scopedEnvVar: () => undefined,
    scopedEnvVarTrue: () => false,
    scopedEnvVarKey: (name: string) => `KCERT_${name}`,
    scopedEnvVarKeys: (name: string) => [`KCERT_${name}`],
  }
  return config as unknown as Config
}
