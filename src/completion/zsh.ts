import { shellWord } from '../errors/command-line.ts'
import { type CompletedCommand, commandCases, longFlags, placesBySettings } from './tree.ts'

/** Returns the completion script for zsh, with a summary next to every word. */
export function zshCompletion(tree: readonly CompletedCommand[]): string {
  return `#compdef kcert
# zsh completion of kcert: source <(kcert completion zsh), after compinit; or a file _kcert in a folder of $fpath

_kcert_next() {
  case "$1" in
${commandCases(tree, ({ next }) => next, offered)}
  *) return 1 ;;
  esac
}

_kcert_flags() {
  case "$1" in
${commandCases(tree, longFlags, offered)}
  esac
}

_kcert_wanted() {
  case "$1" in
${wantedCases(tree)}
  *) return 1 ;;
  esac
}

_kcert_offer_wanted() {
  case "$1" in
  /file) _files ;;
  /folder) _files -/ ;;
  /nothing) ;;
  *) compadd -- \${(s: :)1} ;;
  esac
}

_kcert() {
  local cur="\${words[CURRENT]}" prev="\${words[CURRENT-1]}" said="" word REPLY
  local -a offered plain
  local -i i ended=0 first=1
  for ((i = 2; i < CURRENT; i++)); do
    word="\${words[i]}"
    [[ "$word" == "--" ]] && ended=1
    offered=()
    if (( first )) && _kcert_next "$said" && plain=("\${offered[@]%%:*}") && (( \${plain[(Ie)$word]} )); then
      said="\${said:+$said }$word"
    else
      first=0
    fi
  done
  offered=()
  if (( ! ended )); then
    if [[ "$cur" == --*=* ]] && _kcert_wanted "$said \${cur%%=*}"; then
      compset -P '*='
      _kcert_offer_wanted "$REPLY"
      return
    fi
    if _kcert_wanted "$said $prev"; then
      _kcert_offer_wanted "$REPLY"
      return
    fi
    if [[ "$cur" == -* ]]; then
      _kcert_flags "$said"
      _describe -o flag offered
      return
    fi
  fi
  if (( first )) && _kcert_next "$said"; then _describe command offered; fi
  if _kcert_wanted "$said"; then _kcert_offer_wanted "$REPLY"; fi
}

if [[ "\${funcstack[1]}" == _kcert ]]; then _kcert "$@"; else compdef _kcert kcert; fi
`
}

function offered(rows: readonly (readonly [word: string, summary: string])[]): string {
  return `offered=(${rows.map(([word, summary]) => shellWord(described(word, summary))).join(' ')})`
}

function wantedCases(tree: readonly CompletedCommand[]): string {
  return [...placesBySettings(tree)]
    .map(([settings, places]) => `  (${places.map(shellWord).join('|')}) REPLY=${shellWord(settings)} ;;`)
    .join('\n')
}

/** Returns a word and its summary, separated by a colon. */
function described(word: string, summary: string): string {
  return summary === '' ? word : `${word.replaceAll(':', '\\:')}:${summary}`
}
