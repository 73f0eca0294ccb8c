// Before anything is painted, so that nobody who chose the dark sees a flash of light. Not a module: those run later.
document.documentElement.dataset.theme = localStorage.getItem('theme') ?? 'auto';
