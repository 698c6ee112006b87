import { versionReport } from '../app/version.ts'
import type { VersionReport } from '../app/version-report.ts'
import { KcertCommand } from '../cli/base-command.ts'
import * as Flag from '../cli/flags.ts'

export default class Version extends KcertCommand {
  static override summary = 'Print the version of kcert.'

  static override description =
    'Prints the version of kcert, the version of Node.js that runs it, and the Git commit that it was built from, if the build recorded one. It contacts no cluster and reads no kubeconfig. For the version of an API server, use kubectl version.'

  static override exitCodes = KcertCommand.exitsOf({
    done: 'the version is printed',
    usage: 'wrong usage',
  })

  static override examples = KcertCommand.examplesOf({
    'Print the version': 'kcert version',
    'Print version, Node.js and platform as JSON': 'kcert version -o json',
    'Print the version alone': 'kcert version -o json | jq -r .clientVersion',
  })

  static override flags = {
    client: Flag.boolean('accepted as in kubectl; kcert never prints the version of a server'),
    output: Flag.reportFormat(),
  }

  protected override async perform() {
    const { flags } = await this.parse(Version)
    return this.show(flags.output, versionReport(this.config.version), render)
  }
}

function render({ clientVersion, nodeVersion, platform, gitCommit }: VersionReport): string {
  const commit = gitCommit === undefined ? '' : `Git Commit: ${gitCommit}\n`
  return `Client Version: ${clientVersion}\nNode Version: ${nodeVersion}\nPlatform: ${platform}\n${commit}`
}
