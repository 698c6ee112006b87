#!/usr/bin/env node
// kubectl runs this to complete `kubectl kcert …`: what has been typed so far comes as arguments, the last word perhaps empty.
process.argv.splice(2, 0, 'completion', 'kubectl')
void import('./run.js')
