import { shellWord } from '../errors/command-line.ts'
import { type CompletedCommand, commandCases, longFlags, placesBySettings } from './tree.ts'

/** Returns the completion script for bash, including bash 3.2 of macOS. It is self-contained, so Tab never starts kcert. */
export function bashCompletion(tree: readonly CompletedCommand[]): string {
  return `# bash completion of kcert: source <(kcert completion bash)

_kcert_next() {
  case "$1" in
${commandCases(tree, ({ next }) => wordsOf(next), echo)}
  *) return 1 ;;
  esac
}

_kcert_flags() {
  case "$1" in
${commandCases(tree, (command) => wordsOf(longFlags(command)), echo)}
  esac
}

# Of a command and a flag: what its value may be. Of a command alone: what its operands may be.
_kcert_wanted() {
  case "$1" in
${wantedCases(tree)}
  *) return 1 ;;
  esac
}

_kcert_offer() {
  local line
  while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen "$@")
}

_kcert_offer_wanted() {
  case "$1" in
  /file) type compopt >/dev/null 2>&1 && compopt -o filenames; _kcert_offer -f -- "$2" ;;
  /folder) type compopt >/dev/null 2>&1 && compopt -o filenames; _kcert_offer -d -- "$2" ;;
  /nothing) ;;
  *) _kcert_offer -W "$1" -- "$2" ;;
  esac
}

_kcert() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" said="" word i wanted
  COMPREPLY=()
  # --flag=value comes as three words.
  if [ "$cur" = "=" ]; then cur=""; elif [ "$prev" = "=" ]; then prev="\${COMP_WORDS[COMP_CWORD-2]}"; fi
  local ended=0 first=1
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="\${COMP_WORDS[i]}"
    [ "$word" = "--" ] && ended=1
    if [ "$first" = 1 ] && _kcert_next "$said" | tr ' ' '\\n' | grep -qxF -e "$word"; then
      said="\${said:+$said }$word"
    else
      first=0
    fi
  done
  if [ "$ended" = 0 ]; then
    if wanted=$(_kcert_wanted "$said $prev"); then
      _kcert_offer_wanted "$wanted" "$cur"
      return
    fi
    case "$cur" in
    -*)
      _kcert_offer -W "$(_kcert_flags "$said")" -- "$cur"
      return
      ;;
    esac
  fi
  [ "$first" = 1 ] && _kcert_offer -W "$(_kcert_next "$said")" -- "$cur"
  if wanted=$(_kcert_wanted "$said"); then _kcert_offer_wanted "$wanted" "$cur"; fi
}

complete -F _kcert kcert
`
}

const wordsOf = (rows: readonly (readonly [word: string, summary: string])[]) =>
  rows.map(([word]) => word).join(' ')
const echo = (text: string) => `echo ${shellWord(text)}`

function wantedCases(tree: readonly CompletedCommand[]): string {
  return [...placesBySettings(tree)]
    .map(([settings, places]) => `  ${places.map(shellWord).join(' | ')}) echo ${shellWord(settings)} ;;`)
    .join('\n')
}
