import type { Config } from '@oclif/core'

/**
 * Returns the parts of oclif's Config that a command reads while it runs. oclif's own loading reads package.json and
 * the manifest and searches plugins, which takes longer than most commands; kcert has no plugins. Help, version
 * and unknown commands use oclif's loading. test/scripts/starts.test.ts compares both.
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
    // oclif searches the command among the words again, to warn of old names, in quadratic time. The command is already found,
    // and this separator ends the second search early.
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
