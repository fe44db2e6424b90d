// CommonJS and ES modules share one package: an error of one is an instance of the other's class.
const rowqueue = require('rowqueue')

import('rowqueue').then(module => {
  for (const name of Object.keys(rowqueue)) if (module[name] !== rowqueue[name]) throw new Error(name)
  console.log(Object.keys(rowqueue).join(' '))
})
