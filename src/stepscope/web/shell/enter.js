// The page behind a link with a token: signed in now, it goes on to the view that the link names after #.
location.replace(`./${location.hash}`);
