// Runs before the first paint, so that dark mode does not flash white. Not a module, because modules run later.
document.documentElement.dataset.theme = localStorage.getItem('theme') ?? 'auto';
