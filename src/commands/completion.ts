import * as Args from '@oclif/core/args'
import type { Shell } from '../app/completion/completion.ts'
import { KcertCommand } from '../cli/base-command.ts'

export default class Completion extends KcertCommand {
  static override summary = 'Print a shell completion script.'

  static override description =
    `Completes commands, flags, flag values and file names, with descriptions where the shell shows them. The script contains all of it,
so pressing Tab starts no program. With source <(…), each new shell creates it again, so it is current after an update of kcert.

For the kubectl plugin (kubectl kcert inspect …), kubectl's own completion calls kubectl_complete-kcert, which the packages
install. If you copied only the executable, create the links: ln -s kcert kubectl-kcert; ln -s kcert kubectl_complete-kcert.`

  static override exitCodes = KcertCommand.exitsOf({
    done: 'the script is printed',
    usage: 'wrong usage, or another shell',
  })

  static override examples = KcertCommand.examplesOf({
    'Load it in bash, from ~/.bashrc': 'source <(kcert completion bash)',
    'Load it in zsh, from ~/.zshrc after compinit': 'source <(kcert completion zsh)',
    'Install it for fish, once and after each update of kcert':
      'kcert completion fish > ~/.config/fish/completions/kcert.fish',
    'Install it in bash for all users, once and after each update of kcert':
      'kcert completion bash | sudo tee /usr/share/bash-completion/completions/kcert',
  })

  static override args = {
    shell: Args.string({
      description: 'shell: bash, zsh or fish',
      required: true,
      options: ['bash', 'zsh', 'fish'],
      ignoreStdin: true,
    }),
  }

  protected override async perform() {
    const [asked, ...line] = this.argv
    const { completionForKubectl, completionScript } = await import('../app/completion/completion.ts')
    // For bin/kubectl_complete-kcert.js. The rest is not a kcert command line but one that is being typed.
    if (asked === 'kubectl') {
      return this.answer(completionForKubectl(line))
    }
    const { args } = await this.parse(Completion)
    return this.answer(completionScript(args.shell as Shell))
  }
}
