import manifest from '../../../oclif.manifest.json' with { type: 'json' }
import program from '../../../package.json' with { type: 'json' }
import { answersFor, kubectlAnswers } from '../../completion/answers.ts'
import { bashCompletion } from '../../completion/bash.ts'
import { fishCompletion } from '../../completion/fish.ts'
import { completionTree, type Manifest } from '../../completion/tree.ts'
import { zshCompletion } from '../../completion/zsh.ts'

export type Shell = keyof typeof scripts

const scripts = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion }

/** Returns the completion script of a shell. */
export function completionScript(shell: Shell): string {
  return scripts[shell](tree())
}

/** Returns the completions of `kubectl kcert LINE...` for kubectl. */
export function completionForKubectl(line: readonly string[]): string {
  return kubectlAnswers(answersFor(line, tree()))
}

function tree() {
  return completionTree(manifest as unknown as Manifest, program.oclif.topics)
}
